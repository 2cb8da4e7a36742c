table attempt_logs with fillfactor=80
    job_id uuid not null
    attempt integer not null
    next_line bigint not null default 0
    first_line bigint not null default 0
    lines bigint not null default 0
    bytes bigint not null default 0
    dropped bigint not null default 0
    constraint attempt_logs_pkey PRIMARY KEY (job_id, attempt)
    CREATE UNIQUE INDEX attempt_logs_pkey ON public.attempt_logs USING btree (job_id, attempt)
table attempts
    job_id uuid not null
    number integer not null
    outcome smallint not null
    started_at bigint not null
    ended_at bigint not null
    error_code text
    error_message text
    constraint attempts_pkey PRIMARY KEY (job_id, number)
    CREATE UNIQUE INDEX attempts_pkey ON public.attempts USING btree (job_id, number)
table calendars
    updated_at bigint not null
    tenant text collate C not null
    name text collate C not null
    weekdays text not null
    days text not null
    constraint calendars_pkey PRIMARY KEY (tenant, name)
    CREATE UNIQUE INDEX calendars_pkey ON public.calendars USING btree (tenant, name)
table callback_tries
    subject_id uuid not null
    callback_id bigint not null
    number integer not null
    tried_at bigint not null
    state smallint not null
    outcome smallint not null
    url text not null
    answer text not null
    constraint callback_tries_pkey PRIMARY KEY (subject_id, callback_id, number)
    CREATE UNIQUE INDEX callback_tries_pkey ON public.callback_tries USING btree (subject_id, callback_id, number)
table callbacks
    id bigint not null identity always
    subject_id uuid not null
    completed_at bigint not null
    due_at bigint not null
    attempt integer not null
    tries integer not null default 0
    state smallint not null
    url text not null
    result text
    error_code text
    error_message text
    document text
    receiver text collate C not null default ''::text
    session uuid
    subject smallint not null default 0
    constraint callbacks_pkey PRIMARY KEY (id)
    CREATE INDEX callbacks_due ON public.callbacks USING btree (receiver, due_at, id) WHERE (session IS NULL)
    CREATE INDEX callbacks_subject ON public.callbacks USING btree (subject_id)
    CREATE INDEX callbacks_taken ON public.callbacks USING btree (session) WHERE (session IS NOT NULL)
    CREATE UNIQUE INDEX callbacks_pkey ON public.callbacks USING btree (id)
table dead_letters
    job_id uuid not null
    failed_at bigint not null
    reason smallint not null
    type text collate C not null
    queue text collate C not null
    constraint dead_letters_pkey PRIMARY KEY (job_id)
    CREATE INDEX dead_letters_failed_at ON public.dead_letters USING btree (failed_at, job_id)
    CREATE UNIQUE INDEX dead_letters_pkey ON public.dead_letters USING btree (job_id)
table dependencies with fillfactor=80
    parent uuid not null
    child uuid not null
    state smallint not null
    constraint dependencies_pkey PRIMARY KEY (parent, child)
    CREATE UNIQUE INDEX dependencies_pkey ON public.dependencies USING btree (parent, child)
table finished_jobs
    id uuid not null
    execute_at bigint not null
    due_at bigint not null
    created_at bigint not null
    timeout_ms bigint not null
    completed_at bigint not null
    attempt integer not null
    retries integer not null
    lost integer not null
    partition smallint not null
    priority smallint not null
    state smallint not null
    target smallint not null
    last_outcome smallint
    tenant text collate C not null
    type text collate C not null
    queue text collate C not null
    spec text not null
    payload text not null
    tags text not null
    started_at bigint
    result text
    error_code text
    error_message text
    schedule_id uuid
    open_parents integer not null default 0
    failed_parents integer not null default 0
    fan_out text
    constraint finished_jobs_pkey PRIMARY KEY (id)
    CREATE INDEX finished_jobs_schedule ON public.finished_jobs USING btree (schedule_id, id) WHERE (schedule_id IS NOT NULL)
    CREATE INDEX finished_jobs_state ON public.finished_jobs USING btree (state, id) WHERE (state <> 4)
    CREATE INDEX finished_jobs_type ON public.finished_jobs USING btree (type, id)
    CREATE UNIQUE INDEX finished_jobs_pkey ON public.finished_jobs USING btree (id)
table fires
    schedule_id uuid not null
    nominal_at bigint not null
    last_at bigint not null
    count bigint not null
    recorded_at bigint not null
    outcome smallint not null
    reason smallint not null
    job_id uuid
    constraint fires_pkey PRIMARY KEY (schedule_id, nominal_at)
    CREATE INDEX fires_queued ON public.fires USING btree (schedule_id, nominal_at) WHERE (reason = 10)
    CREATE INDEX fires_runs ON public.fires USING btree (schedule_id, nominal_at) WHERE (count > 1)
    CREATE UNIQUE INDEX fires_pkey ON public.fires USING btree (schedule_id, nominal_at)
table idempotency_keys
    tenant text collate C not null
    key text collate C not null
    fingerprint bytea not null
    job_id uuid not null
    created_at bigint not null
    constraint idempotency_keys_pkey PRIMARY KEY (tenant, key)
    CREATE UNIQUE INDEX idempotency_keys_pkey ON public.idempotency_keys USING btree (tenant, key)
table installation
    single boolean not null default true
    halted boolean not null default false
    secret bytea
    constraint installation_is_one_row CHECK (single)
    constraint installation_pkey PRIMARY KEY (single)
    CREATE UNIQUE INDEX installation_pkey ON public.installation USING btree (single)
table job_progress with fillfactor=80
    job_id uuid not null
    attempt integer not null
    percent smallint
    message text
    noted_at bigint not null
    constraint job_progress_pkey PRIMARY KEY (job_id)
    CREATE UNIQUE INDEX job_progress_pkey ON public.job_progress USING btree (job_id)
table job_tags
    tag text collate C not null
    job_id uuid not null
    constraint job_tags_pkey PRIMARY KEY (tag, job_id)
    CREATE UNIQUE INDEX job_tags_pkey ON public.job_tags USING btree (tag, job_id)
table jobs with fillfactor=45, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=2000, autovacuum_analyze_scale_factor=0.05, autovacuum_analyze_threshold=2000
    id uuid not null
    execute_at bigint not null
    due_at bigint not null
    created_at bigint not null
    timeout_ms bigint not null
    attempt integer not null default 0
    retries integer not null default 0
    lost integer not null default 0
    burst_failures integer not null default 0
    partition smallint not null
    priority smallint not null
    state smallint not null
    target smallint not null
    cancel_requested boolean not null default false
    tenant text collate C not null
    type text collate C not null
    queue text collate C not null
    spec text not null
    payload text not null
    tags text not null
    burst_started_at bigint
    session uuid
    started_at bigint
    deadline bigint
    error_code text
    error_message text
    schedule_id uuid
    open_parents integer not null default 0
    failed_parents integer not null default 0
    release smallint not null default 0
    fan_out text
    route uuid
    constraint jobs_pkey PRIMARY KEY (id)
    CREATE INDEX jobs_due ON public.jobs USING btree (priority, due_at, uuid_send(id)) WHERE ((due_at < '9223372036854775807'::bigint) AND (route IS NULL))
    CREATE INDEX jobs_route ON public.jobs USING btree (route, priority, due_at, uuid_send(id)) WHERE ((due_at < '9223372036854775807'::bigint) AND (route IS NOT NULL))
    CREATE INDEX jobs_route_not_due ON public.jobs USING btree (route) WHERE ((due_at = '9223372036854775807'::bigint) AND (route IS NOT NULL))
    CREATE INDEX jobs_schedule ON public.jobs USING btree (schedule_id, id) WHERE (schedule_id IS NOT NULL)
    CREATE UNIQUE INDEX jobs_pkey ON public.jobs USING btree (id)
table log_chunks
    job_id uuid not null
    attempt integer not null
    first_line bigint not null
    lines bigint not null
    bytes bigint not null
    content text not null
    constraint log_chunks_pkey PRIMARY KEY (job_id, attempt, first_line)
    CREATE UNIQUE INDEX log_chunks_pkey ON public.log_chunks USING btree (job_id, attempt, first_line)
table once_keys
    tenant text collate C not null
    job_id uuid not null
    key text collate C not null
    holder_job uuid not null
    holder_attempt integer not null
    in_doubt boolean not null
    result text
    ttl_ms bigint not null
    expires_at bigint not null
    constraint once_keys_pkey PRIMARY KEY (tenant, job_id, key)
    CREATE INDEX once_keys_expiry ON public.once_keys USING btree (expires_at)
    CREATE UNIQUE INDEX once_keys_pkey ON public.once_keys USING btree (tenant, job_id, key)
table queues
    name text collate C not null
    paused boolean not null default false
    constraint queues_pkey PRIMARY KEY (name)
    CREATE INDEX queues_paused ON public.queues USING btree (name) WHERE paused
    CREATE UNIQUE INDEX queues_pkey ON public.queues USING btree (name)
table reconcile_requests with fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000
    id uuid not null
    times bigint not null identity always
    constraint reconcile_requests_pkey PRIMARY KEY (id)
    CREATE UNIQUE INDEX reconcile_requests_pkey ON public.reconcile_requests USING btree (id)
table routes
    id uuid not null
    queue text collate C not null
    type text collate C not null
    requires text not null
    executor smallint
    constraint routes_pkey PRIMARY KEY (id)
    CREATE UNIQUE INDEX routes_pkey ON public.routes USING btree (id)
table schedules with autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=2000
    id uuid not null
    revision bigint not null
    cursor_at bigint not null
    created_at bigint not null
    updated_at bigint not null
    partition smallint not null
    priority smallint not null
    paused boolean not null
    tenant text collate C not null
    name text collate C not null
    spec text not null
    next_at bigint
    rolled_at bigint
    held_at bigint
    wake_at bigint
    pause_note text
    backfill text
    constraint schedules_name UNIQUE (tenant, name)
    constraint schedules_pkey PRIMARY KEY (id)
    CREATE INDEX schedules_by_name ON public.schedules USING btree (name, tenant)
    CREATE INDEX schedules_wake ON public.schedules USING btree (wake_at, id) WHERE (wake_at IS NOT NULL)
    CREATE UNIQUE INDEX schedules_name ON public.schedules USING btree (tenant, name)
    CREATE UNIQUE INDEX schedules_pkey ON public.schedules USING btree (id)
table schema_migrations
    version bigint not null
    name text not null
    applied_at bigint not null
    constraint schema_migrations_pkey PRIMARY KEY (version)
    CREATE UNIQUE INDEX schema_migrations_pkey ON public.schema_migrations USING btree (version)
table sessions
    id uuid not null
    node text not null
    expires_at bigint not null
    profile text
    instance uuid
    lease_ms bigint not null default 0
    opened_at bigint not null default 0
    draining boolean not null default false
    constraint sessions_pkey PRIMARY KEY (id)
    CREATE UNIQUE INDEX sessions_instance ON public.sessions USING btree (instance) WHERE (instance IS NOT NULL)
    CREATE UNIQUE INDEX sessions_pkey ON public.sessions USING btree (id)
table worker_attempts with fillfactor=80, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=2000
    job_id uuid not null
    session uuid not null
    claimed_by uuid not null
    deadline bigint not null
    constraint worker_attempts_pkey PRIMARY KEY (job_id)
    CREATE INDEX worker_attempts_session ON public.worker_attempts USING btree (session)
    CREATE UNIQUE INDEX worker_attempts_pkey ON public.worker_attempts USING btree (job_id)
table workflow_runs with fillfactor=60, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=2000
    id uuid not null
    revision bigint not null
    created_at bigint not null
    version integer not null
    next_index integer not null
    blocked integer not null
    stalled integer not null
    total integer not null
    open integer not null
    partition smallint not null
    status smallint not null
    cancel_requested boolean not null
    tenant text collate C not null
    workflow text collate C not null
    input text not null
    ended_at bigint
    stalls_at bigint
    job_id uuid
    after_first integer
    idempotency_key text collate C
    fingerprint bytea
    had_failure boolean not null default true
    data_bytes bigint not null default 0
    paused_at bigint
    constraint workflow_runs_pkey PRIMARY KEY (id)
    CREATE INDEX workflow_runs_paused ON public.workflow_runs USING btree (uuid_send(id)) WHERE (status = 4)
    CREATE INDEX workflow_runs_stalls ON public.workflow_runs USING btree (stalls_at) WHERE ((status = 0) AND (stalls_at IS NOT NULL))
    CREATE INDEX workflow_runs_workflow ON public.workflow_runs USING btree (tenant, workflow, id)
    CREATE UNIQUE INDEX workflow_runs_key ON public.workflow_runs USING btree (tenant, idempotency_key) WHERE (idempotency_key IS NOT NULL)
    CREATE UNIQUE INDEX workflow_runs_pkey ON public.workflow_runs USING btree (id)
table workflows
    created_at bigint not null
    version integer not null
    removed boolean not null default false
    tenant text collate C not null
    name text collate C not null
    spec text not null
    constraint workflows_pkey PRIMARY KEY (tenant, name, version)
    CREATE UNIQUE INDEX workflows_pkey ON public.workflows USING btree (tenant, name, version)
