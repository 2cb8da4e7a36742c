-- What came of each try to deliver a callback, for whoever asks.

CREATE TABLE callback_tries (
    job_id      uuid     NOT NULL,
    callback_id bigint   NOT NULL,
    number      integer  NOT NULL,
    tried_at    bigint   NOT NULL,
    state       smallint NOT NULL,
    outcome     smallint NOT NULL,
    url         text     NOT NULL,
    answer      text     NOT NULL,
    PRIMARY KEY (job_id, callback_id, number)
);

CREATE INDEX callbacks_job ON callbacks (job_id);
