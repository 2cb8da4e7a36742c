//! One suite a port, run against every implementation.
//!
//! A rule is an async function that panics if the implementation breaks it; a macro stamps every rule as a test of its
//! own, so that the name of a failing test says which promise is broken.

#[allow(missing_docs, reason = "a rule is named after what it checks")]
pub mod schedules;
#[allow(missing_docs, reason = "a rule is named after what it checks")]
pub mod store;
#[allow(missing_docs, reason = "a rule is named after what it checks")]
pub mod workflows;

/// Stamps one test a rule of a suite; the suites' own macros list the rules.
#[doc(hidden)]
#[macro_export]
macro_rules! stamp_rules {
    ($factory:expr; $suite:ident; $($group:ident { $($rule:ident,)+ })+) => {$(
        mod $group {
            #[allow(unused_imports, reason = "the factory may be named by a path of its own")]
            use super::*;
            $(
                #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $rule() {
                    let (store, _kept_alive) = ($factory)().await;
                    $crate::conformance::$suite::$group::$rule(store).await;
                }
            )+
        }
    )+};
}

/// A rule that nobody stamps is checked nowhere: every rule of the groups' sources is in the list of the suite's.
#[cfg(test)]
fn assert_stamped(suite: &str, groups: &[(&str, &str)]) {
    let (_, stamped) = suite.split_once("stamp_rules!").expect("the macro lists the rules");
    for (group, source) in groups {
        let rules = source.lines().filter(|line| line.contains("(store: Arc<dyn "));
        for rule in rules.filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next()) {
            assert!(stamped.contains(&format!(" {rule},\n")), "{group}::{rule} is not stamped");
        }
    }
}
