//! Compares a dumped schema with the file in `schema/`; `UPDATE_GOLDEN=1` rewrites the file instead.

use std::path::Path;

/// Fails unless `schema/<file>` says exactly `dump`.
pub(crate) fn assert_schema(file: &str, dump: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, dump).expect("the golden schema can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        golden, dump,
        "the schema differs from schema/{file}: run with UPDATE_GOLDEN=1 and review the diff"
    );
}
