-- What came of each try to deliver a callback, for whoever asks.

CREATE TABLE callback_tries (
    job_id      BLOB NOT NULL,
    callback_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    tried_at    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    outcome     INTEGER NOT NULL,
    url         TEXT NOT NULL,
    answer      TEXT NOT NULL,
    PRIMARY KEY (job_id, callback_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX callbacks_job ON callbacks (job_id);
