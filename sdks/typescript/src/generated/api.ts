// Made from docs/reference/openapi.json by scripts/generate.mjs. Do not edit.

export interface paths {
    "/api/v1/admin/halt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Halt: start no jobs on any node until resumed */
        post: operations["halt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume: start jobs again */
        post: operations["resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the state of this node */
        get: operations["get_status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attempts/{token}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report that an attempt succeeded
         * @description The body is optional.
         */
        post: operations["complete_attempt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attempts/{token}/fail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report that an attempt failed
         * @description The body is optional.
         */
        post: operations["fail_attempt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attempts/{token}/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report that an attempt is still running
         * @description The body is optional: how far it has come.
         */
        post: operations["heartbeat_attempt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attempts/{token}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add lines to the log of an attempt
         * @description Lines are numbered by whoever sends them: a line that was sent before is not added again. Also accepted when the
         *     attempt is over.
         */
        post: operations["append_attempt_logs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attempts/{token}/once/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask whether this attempt is to carry out an effect
         * @description The first who asks for a key carries out the effect, then says `done` or `abandon`. Others get its result. The same
         *     attempt that asks again gets the same answer again.
         */
        post: operations["ask_once"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attempts/{token}/once/{key}/abandon": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say that an effect was not carried out: the next who asks is first
         * @description If the effect was in doubt, it stays in doubt: nobody knows whether an earlier attempt carried it out.
         */
        post: operations["abandon_once"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attempts/{token}/once/{key}/done": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Say that an effect was carried out, and what came of it */
        post: operations["done_once"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/calendars": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List calendars by name, without their days */
        get: operations["list_calendars"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/calendars/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a calendar */
        get: operations["get_calendar"];
        /** Store a calendar, replacing one of the same name */
        put: operations["put_calendar"];
        post?: never;
        /**
         * Delete a calendar
         * @description From then on, schedules that refer to it fire on its days.
         */
        delete: operations["delete_calendar"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/calendars/{name}/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import an iCalendar file into a calendar
         * @description An all-day event adds all its days, any other event the date on which it starts. Yearly repetition is expanded for
         *     ten years. Other repetition is ignored.
         */
        post: operations["import_calendar"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cron/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview when a cron expression fires
         * @description Nothing is stored. A valid expression that never fires is not an error: `never` is `true`.
         */
        post: operations["preview_cron"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List dead letters, latest first */
        get: operations["list_dead_letters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/redrive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redrive many dead letters
         * @description The redrive goes on in the background, whether or not the client waits. The answer is 200 if it ends quickly.
         *     Otherwise it is 202, and `Location` says where to read its progress. A request without `type` and `queue` must say
         *     `"all": true`. Each job is redriven once, even if it fails again meanwhile.
         */
        post: operations["redrive_dead_letters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/redrive/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the progress of a redrive
         * @description 404 if the server has restarted since. Send the request again with the same `failed_before` to do the rest.
         */
        get: operations["get_redrive"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a dead letter */
        get: operations["get_dead_letter"];
        put?: never;
        post?: never;
        /** Discard a dead letter; the job stays in the history */
        delete: operations["discard_dead_letter"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/{job_id}/redrive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redrive a dead letter, optionally with a new payload
         * @description The body is optional.
         */
        post: operations["redrive_dead_letter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List jobs, newest first
         * @description The jobs come without `payload` and `result`, unless `include` asks for them.
         */
        get: operations["list_jobs"];
        put?: never;
        /**
         * Submit a job
         * @description If the same idempotency key was used with the same body, the answer is 200 and the first job. With a different body
         *     it is 409.
         */
        post: operations["submit_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit many jobs
         * @description The server checks each job by itself. The results are in the order of the jobs.
         */
        post: operations["submit_jobs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a job */
        get: operations["get_job"];
        put?: never;
        post?: never;
        /**
         * Cancel a job
         * @description Same as `POST …/cancel`. A running job is asked to stop.
         */
        delete: operations["delete_job"];
        options?: never;
        head?: never;
        /** Change a job that has not started */
        patch: operations["patch_job"];
        trace?: never;
    };
    "/api/v1/jobs/{id}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the attempts of a job, oldest first */
        get: operations["list_attempts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/attempts/{n}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the log lines of an attempt
         * @description Also while the attempt is running. If there were more than are kept, the first line says how many are missing. Empty
         *     for targets that write no log.
         */
        get: operations["list_attempt_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/callbacks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the callbacks about a job, with their tries
         * @description Oldest first, up to a hundred.
         */
        get: operations["list_job_callbacks"];
        put?: never;
        /**
         * Send the outcome of a job again
         * @description Sends a new callback to the job's `callback_url`, with up to three tries, and answers with that callback. 409 if the
         *     job has not ended or has no `callback_url`.
         */
        post: operations["resend_job_callback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a job
         * @description A running job is asked to stop.
         */
        post: operations["cancel_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the log lines of all attempts of a job, or follow them */
        get: operations["list_job_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pause a job until it is resumed */
        post: operations["pause_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume a paused job */
        post: operations["resume_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Retry a failed or cancelled job */
        post: operations["retry_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run a job now */
        post: operations["run_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Explain why a job is not running */
        get: operations["explain_job"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List queues by name */
        get: operations["list_queues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a queue */
        get: operations["get_queue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a queue: start none of its jobs until it is resumed
         * @description A queue can be paused before it has any job.
         */
        post: operations["pause_queue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume a paused queue */
        post: operations["resume_queue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List schedules by name */
        get: operations["list_schedules"];
        put?: never;
        /**
         * Create a schedule
         * @description A schedule that never fires is accepted: `never` is `true`.
         */
        post: operations["create_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview a schedule and its next firings
         * @description Accepts and rejects the same requests as creating one, except that the name may be taken. Nothing is stored.
         */
        post: operations["preview_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a schedule */
        get: operations["get_schedule"];
        /**
         * Create a schedule, or change it to exactly this
         * @description Fields that you leave out have their defaults, also in a schedule that exists. The exception is `paused`: a schedule
         *     that exists stays paused or not, as it is. A change applies from the next firing on. If the schedule is already as
         *     the request says, nothing changes.
         */
        put: operations["put_schedule"];
        post?: never;
        /**
         * Delete a schedule and its ledger
         * @description The schedule does not fire after the answer. The jobs it made stay.
         */
        delete: operations["delete_schedule"];
        options?: never;
        head?: never;
        /**
         * Change a schedule
         * @description The change applies from the next firing on. Fields that you leave out keep their value, even if somebody else
         *     changes them at the same time. `job` is replaced as a whole.
         */
        patch: operations["patch_schedule"];
        trace?: never;
    };
    "/api/v1/schedules/{schedule}/backfill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the backfill that is running, or else the last one
         * @description 404 if the schedule never had one.
         */
        get: operations["get_backfill"];
        put?: never;
        /**
         * Backfill a past range of a schedule
         * @description Makes a job for every firing in the range that has none, oldest first, at most `rate` per second. Unless `overlap`
         *     is `allow`, the jobs run one after the other. Firings that already have a job get no second one. With `preview`,
         *     nothing changes, and the answer says what the backfill would do.
         */
        post: operations["backfill_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule}/backfill/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel the backfill that is running
         * @description The jobs it made stay. A backfill that has ended does not change. 404 if the schedule never had one.
         */
        post: operations["cancel_backfill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule}/fires": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the ledger of a schedule, latest firings first */
        get: operations["list_fires"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule}/next": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the next firings of a schedule
         * @description Firings on excluded days are left out. A paused schedule shows the firings it would have. Fewer items than requested
         *     mean that there are no more, that a whole year is excluded, or that the search would take too long.
         */
        get: operations["next_fires"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a schedule
         * @description The body is optional. The schedule does not fire until it is resumed. Firings that come due meanwhile are recorded
         *     as skipped and not made up for.
         */
        post: operations["pause_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume a paused schedule with its next firing */
        post: operations["resume_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule}/trigger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Trigger a schedule now, even a paused one
         * @description The body is optional. If the same idempotency key was used for the same schedule and payload, the answer is 200 and
         *     the first job. Otherwise a used key is answered with 409.
         */
        post: operations["trigger_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/server": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Say what this server is
         * @description A library asks this before it uses anything else.
         */
        get: operations["get_server"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List workers by id */
        get: operations["list_workers"];
        put?: never;
        /**
         * Register a worker: open a session
         * @description Registering again with the same `instance` is the same session.
         */
        post: operations["register_worker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a worker and what it runs */
        get: operations["get_worker"];
        put?: never;
        post?: never;
        /**
         * Leave: end a session
         * @description What the worker still has goes back at once.
         */
        delete: operations["leave_worker"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{id}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ask a worker to finish what it has and take nothing new */
        post: operations["drain_worker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{id}/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a heartbeat: renew the lease of all that the worker has */
        post: operations["heartbeat_worker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add lines to the logs of attempts
         * @description Each log is answered by itself. Lines are numbered by whoever sends them: a line that was sent before is not added
         *     again. Also accepted when an attempt is over.
         */
        post: operations["append_worker_logs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{id}/poll": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Poll for jobs
         * @description Answers as soon as there is a job, or news about those that the worker has; else empty after `wait`. The jobs of an
         *     answer are the worker's own already.
         */
        post: operations["poll_worker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report how attempts ended
         * @description Each report is answered by itself. The same outcome of the same attempt is accepted again.
         */
        post: operations["report_attempts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let a worker take jobs again */
        post: operations["resume_worker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List runs, newest first, without their tasks */
        get: operations["list_workflow_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a run with its tasks */
        get: operations["get_workflow_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a run
         * @description Tasks that have not started are cancelled, and running ones are asked to stop. The `after` tasks still run. If the
         *     run was paused, it is resumed.
         */
        post: operations["cancel_workflow_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the items of a fan-out, in order
         * @description Empty until the fan-out has started.
         */
        get: operations["list_workflow_run_items"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a run
         * @description No task starts after the answer until the run is resumed. Running tasks go on, and the tasks that depend on them
         *     wait. A run that is paused already does not change.
         */
        post: operations["pause_workflow_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a paused run
         * @description Tasks that came due meanwhile start. A run that is not paused does not change.
         */
        post: operations["resume_workflow_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a run: run what failed or was cancelled again, and go on from there
         * @description Completed tasks stay completed.
         */
        post: operations["retry_workflow_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/tasks/{task}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Complete a task by hand: go on as if it had completed, with this result */
        post: operations["complete_workflow_task"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/tasks/{task}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a task that failed, was cancelled or was skipped
         * @description For a fan-out, this retries the items that failed or were cancelled.
         */
        post: operations["retry_workflow_task"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflow-runs/{id}/tasks/{task}/skip": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Skip a task: go on as if it had completed, without a result */
        post: operations["skip_workflow_task"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List workflows by name, each in its latest version */
        get: operations["list_workflows"];
        put?: never;
        /**
         * Store a workflow
         * @description If the name exists, this makes the next version, even if the workflow was deleted. If the latest version is the
         *     same, nothing changes. Runs that have started keep their version. The schedule of the workflow becomes what the
         *     definition says, and is removed if the definition has none.
         */
        post: operations["submit_workflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a workflow with its definition
         * @description A deleted workflow has no latest version, but each of its versions can still be read.
         */
        get: operations["get_workflow"];
        put?: never;
        post?: never;
        /**
         * Delete a workflow and its schedule
         * @description No run of it can start after the answer. Existing runs go on with their versions. A definition that is stored under
         *     the same name later becomes the next version.
         */
        delete: operations["delete_workflow"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{name}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Draw a workflow as a diagram, in text form */
        get: operations["draw_workflow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{name}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a run of the latest version of a workflow
         * @description The body is optional. If the same idempotency key was used for the same workflow and input, the answer is 200 and
         *     the first run. Otherwise a used key is answered with 409. The answer does not contain the tasks.
         */
        post: operations["start_workflow_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{name}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the versions of a workflow, latest first, even of a deleted one */
        get: operations["list_workflow_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check whether the process is alive */
        get: operations["healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get metrics in the Prometheus text format */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get this OpenAPI document */
        get: operations["openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check whether the server is ready for traffic */
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description A report was accepted.
         * @enum {string}
         */
        Accepted: "accepted";
        /** @description An accepted report. */
        AcceptedReport: {
            job_status?: components["schemas"]["Status"] | null;
            /** @description Always `accepted`. */
            status: components["schemas"]["Accepted"];
        };
        /** @description What executes a job: exactly one of these */
        AnsweredTarget: {
            http: components["schemas"]["HttpTarget"];
        } | {
            worker: components["schemas"]["WorkerTarget"];
        } | {
            workflow: components["schemas"]["WorkflowTarget"];
        } | {
            process: components["schemas"]["ProcessTarget"];
        } | {
            fan_out: components["schemas"]["FanOutTarget"];
        };
        /** @description Lines of the logs of attempts, up to 1,000 attempts. */
        AppendLogs: {
            /** @description The lines, by attempt. */
            logs: components["schemas"]["AttemptLines"][];
        };
        /** @description An attempt asks whether it is to carry out an effect. */
        AskOnce: {
            scope?: components["schemas"]["OnceScope"] | null;
            ttl?: components["schemas"]["Span"] | null;
        };
        /** @description A job that a worker is to run. */
        Assignment: {
            /**
             * Format: int32
             * @description The number of this attempt.
             */
            attempt: number;
            /** @description When the attempt must have ended, by the server's clock. */
            deadline: components["schemas"]["Time"];
            /** @description How long that is from now on. */
            deadline_in: components["schemas"]["Span"];
            /**
             * Format: int32
             * @description Grows with every attempt of the job, so that others can tell an old attempt from a new one.
             */
            fencing_token: number;
            /** @description The job, with its payload. */
            job: components["schemas"]["Job"];
            /** @description Names this attempt in every report. Whoever has it may report on the attempt, and on nothing else. */
            token: string;
            /** @description The trace that the job belongs to (W3C trace context). */
            traceparent?: string | null;
        };
        /** @description One attempt to execute a job. */
        Attempt: {
            ended_at?: components["schemas"]["Time"] | null;
            error?: components["schemas"]["JobError"] | null;
            /**
             * Format: int32
             * @description The number of the attempt, beginning with 1. It is also the fencing token.
             */
            number: number;
            /** @description `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`. `null` while it is running. */
            outcome?: string | null;
            /** @description When it started. */
            started_at: components["schemas"]["Time"];
        };
        /** @description Lines of the log of an attempt. */
        AttemptLines: {
            /**
             * Format: int64
             * @description The number of the first line, beginning with 0 in each attempt. A line that was sent before is not added again.
             */
            first: number;
            /** @description The lines, numbered from there on. */
            lines: components["schemas"]["ReportedLine"][];
            /** @description Which attempt. */
            token: string;
        };
        /** @description How far an attempt has come. */
        AttemptProgress: {
            /** @description What it is doing, in words. What is longer than 255 characters is cut. */
            message?: string | null;
            /**
             * Format: double
             * @description How much of it is done, in percent.
             */
            progress?: number | null;
            /** @description Which attempt. */
            token: string;
        };
        /** @description The end of an attempt. */
        AttemptReport: {
            delay?: components["schemas"]["Span"] | null;
            error?: components["schemas"]["ReportedError"] | null;
            logs?: components["schemas"]["ReportedLines"] | null;
            /** @description How it ended. */
            outcome: components["schemas"]["ReportedOutcome"];
            ran?: components["schemas"]["Span"] | null;
            /** @description The result of a completed one: any JSON. */
            result?: unknown;
            /** @description Whether a retry could help one that failed. Default `true`. */
            retryable?: boolean | null;
            /** @description Which attempt. */
            token: string;
        };
        /** @description A backfill and its progress. */
        Backfill: {
            /**
             * Format: int64
             * @description How many firings already had a job and got no second one.
             */
            already_fired: number;
            /**
             * Format: int64
             * @description How many firings the range has.
             */
            count: number;
            ended_at?: components["schemas"]["Time"] | null;
            /** @description The start of the range. */
            from: components["schemas"]["Time"];
            /**
             * Format: int64
             * @description How many firings it has yet to process.
             */
            left: number;
            /**
             * Format: int64
             * @description How many jobs it has made.
             */
            made: number;
            next_time?: components["schemas"]["Time"] | null;
            priority?: components["schemas"]["Priority"] | null;
            /**
             * Format: int32
             * @description How many jobs per second it may make.
             */
            rate: number;
            /** @description When it was requested. */
            requested_at: components["schemas"]["Time"];
            /** @description Its state. */
            status: components["schemas"]["BackfillStatus"];
            /** @description The end of the range. */
            to: components["schemas"]["Time"];
            waiting?: components["schemas"]["BackfillWait"] | null;
        };
        /** @description What a backfill would do. */
        BackfillPreview: {
            /**
             * Format: int64
             * @description How many of these firings already have a job. They get no second one.
             */
            already_fired: number;
            /**
             * Format: int64
             * @description How many firings the range has.
             */
            count: number;
            first?: components["schemas"]["Time"] | null;
            /** @description The start of the range. */
            from: components["schemas"]["Time"];
            last?: components["schemas"]["Time"] | null;
            /** @description The end of the range, or the time up to which the schedule has been processed, if that is earlier. */
            to: components["schemas"]["Time"];
        };
        /** @description A request to make a job for every firing in a range that has none. `from` and `to` are required. */
        BackfillSchedule: {
            /** @description The start of the range, inclusive. */
            from: components["schemas"]["Time"];
            /** @description Whether to only report what the backfill would do. Default `false`. */
            preview?: boolean | null;
            priority?: components["schemas"]["Priority"] | null;
            /**
             * Format: int32
             * @description How many jobs per second it may make. Default 10.
             */
            rate?: number | null;
            /** @description The end of the range, inclusive. It must be in the past. */
            to: components["schemas"]["Time"];
        };
        /**
         * @description The state of a backfill.
         * @enum {string}
         */
        BackfillStatus: "running" | "completed" | "cancelled";
        /**
         * @description What a backfill waits for.
         * @enum {string}
         */
        BackfillWait: "overlap" | "paused";
        /**
         * @description How the delay grows from retry to retry.
         * @enum {string}
         */
        Backoff: "fixed" | "linear" | "exponential";
        /** @description The answer for one job of a batch: either the stored job, or the reason why it was rejected. */
        BatchItem: {
            /** @description The job is stored, by this request or by an earlier one with the same idempotency key. */
            job: components["schemas"]["Job"];
        } | {
            /** @description The job was rejected. */
            error: components["schemas"]["Problem"];
        };
        /** @description The answer to a batch: one result per job, in order. */
        BatchResult: {
            /** @description The results. */
            results: components["schemas"]["BatchItem"][];
        };
        /** @description Many jobs in one request. The server checks each by itself, so they stay text until then. */
        BatchSubmit: {
            /** @description The jobs, up to 10,000. */
            jobs: components["schemas"]["SubmitJob"][];
        };
        /** @description A named set of days. */
        Calendar: {
            /**
             * @description The days, in order.
             * @example [
             *       "2026-12-25"
             *     ]
             */
            days: string[];
            /** @description Its name. A schedule refers to it as `calendar:<name>`. */
            name: string;
            /** @description When it was last changed. */
            updated_at: components["schemas"]["Time"];
            /** @description Weekdays that are excluded as well. */
            weekdays: components["schemas"]["Weekday"][];
        };
        /** @description The result of an import. */
        CalendarImport: {
            /** @description How many of these days were not in the calendar before. */
            added: number;
            /** @description How many of them are cancelled. They are ignored. */
            cancelled: number;
            /** @description How many days the events cover. */
            days: number;
            /** @description How many events the file has. */
            events: number;
            /** @description The name of the calendar. */
            name: string;
            /** @description How many of them repeat by a rule that is not supported. Only their first occurrence is imported. */
            repeats_ignored: number;
            /** @description How many days the calendar has now. */
            total: number;
        };
        /** @description A calendar in a list, without its days. */
        CalendarSummary: {
            /** @description How many days it has. */
            day_count: number;
            /** @description The first day. */
            first_day?: string | null;
            /** @description The last day. */
            last_day?: string | null;
            /** @description Its name. */
            name: string;
            /** @description When it was last changed. */
            updated_at: components["schemas"]["Time"];
            /** @description Weekdays that are excluded as well. */
            weekdays: components["schemas"]["Weekday"][];
        };
        /** @description A callback about a job. */
        Callback: {
            /** @description The event it reports: `job.completed`, `job.failed` or `job.cancelled`. */
            event: string;
            /**
             * Format: int64
             * @description Its number, which is part of its `webhook-id`.
             */
            id: number;
            next_try_at?: components["schemas"]["Time"] | null;
            /** @description `pending`, `delivered` or `given_up`. */
            status: string;
            /** @description The tries so far, oldest first. */
            tries: components["schemas"]["CallbackTry"][];
            /** @description The URL that receives it. */
            url: string;
        };
        /** @description One try to deliver a callback. */
        CallbackTry: {
            /** @description What the receiver answered, or why there was no answer. */
            answer: string;
            /** @description When it ended. */
            at: components["schemas"]["Time"];
            /**
             * Format: int32
             * @description The number of the try, beginning with 1.
             */
            number: number;
            /** @description `delivered`, `failed`, or `given_up` for the last one that failed. */
            outcome: string;
        };
        /**
         * @description What a clock change does to local times.
         * @enum {string}
         */
        ClockChange: "gap" | "fold";
        /** @description An error with a code. */
        CodedError: {
            code?: components["schemas"]["Name"] | null;
            /** @description What happened, as a sentence. */
            message: string;
            /** @description Where in its code it happened. Stored with the message. */
            stack?: string | null;
            type?: components["schemas"]["Name"] | null;
        };
        /** @description The report that an attempt succeeded. */
        CompleteAttempt: {
            /** @description The result: any JSON. */
            result?: unknown;
        };
        /** @description A request to mark a task as completed. */
        CompleteTask: {
            /** @description The result of the task, which other tasks may use: any JSON, including `null`. */
            result?: unknown;
        };
        /**
         * Format: condition
         * @description A condition over the results of other tasks, such as `extract.result.rows > 0`.
         */
        Condition: string;
        /**
         * Format: cron
         * @description A cron expression: five fields, six with leading seconds, a nickname such as `@daily`, or `@every 90s`.
         */
        Cron: string;
        /** @description When an expression fires. */
        CronPreview: {
            /** @description The answer shows firings after this time. */
            after: components["schemas"]["Time"];
            /**
             * @description What the expression means, in words.
             * @example at 02:30 every day
             */
            description: string;
            /** @description Whether the expression never fires after that time. */
            never: boolean;
            /** @description The next firings in order, with the offset of the zone. */
            next: components["schemas"]["LocalTime"][];
            next_zone_change?: components["schemas"]["ZoneChange"] | null;
            /**
             * @description The time zone, as the time-zone database spells it.
             * @example America/New_York
             */
            timezone: string;
            /**
             * @description The release of the IANA time-zone database that the server uses.
             * @example 2026a
             */
            tzdb_version: string;
        };
        /**
         * @description How day-of-month and day-of-week combine when both are restricted.
         * @enum {string}
         */
        DayLogic: "or" | "and";
        /** @description A day, `2026-12-25`, or a range that includes both, `2026-12-24/2026-12-31`. */
        Days: string;
        /** @description A job that the server gave up. */
        DeadLetter: {
            /**
             * Format: int32
             * @description How many attempts it had.
             */
            attempts: number;
            error?: components["schemas"]["JobError"] | null;
            /** @description When the server gave it up. */
            failed_at: components["schemas"]["Time"];
            /**
             * Format: uuid
             * @description The job.
             */
            job_id: string;
            /** @description The data for the target. */
            payload: unknown;
            /** @description How urgent it was. */
            priority: components["schemas"]["Priority"];
            /** @description The queue it waited in. */
            queue: string;
            /** @description Why there was no further attempt: `retries_exhausted`, `not_retryable`, `poison_pill` or `at_most_once`. */
            reason: string;
            /** @description Labels for finding the job. */
            tags: string[];
            /** @description The tenant that owns it. */
            tenant: string;
            /** @description The kind of work: the name of the handler. */
            type: string;
        };
        /**
         * @description How often a job may execute.
         * @enum {string}
         */
        Delivery: "at_least_once" | "at_most_once";
        /** @description The absolute path of a directory. */
        Directory: string;
        /**
         * @description What happens to a fixed local time that occurs twice.
         * @enum {string}
         */
        DstFold: "once" | "last" | "both";
        /**
         * @description What happens to a fixed local time that the clock skips.
         * @enum {string}
         */
        DstGap: "run_after" | "skip" | "shift";
        Empty: Record<string, unknown>;
        /** @description A day, `2026-12-25`, a range that includes both, `2026-12-24/2026-12-31`, or `calendar:holidays`. */
        ExcludedDays: string;
        /**
         * @description A kind of target that a worker can run by itself.
         * @enum {string}
         */
        ExecutorKind: "http" | "process";
        /** @description An exit code other than 0 */
        ExitCode: number;
        /**
         * @description What exit codes other than 0 mean. A code is in one list at most. A process that a signal ended counts as one that
         *     exited with 128 plus the number of the signal.
         */
        ExitCodes: {
            /** @description Codes that are not retried: the job fails at once. */
            fail?: components["schemas"]["ExitCode"][];
            /** @description The only codes that are retried. If it is left out, all codes are that are not in another list. */
            retry?: components["schemas"]["ExitCode"][] | null;
            snooze?: components["schemas"]["Snooze"] | null;
        };
        /** @description The report that an attempt failed. */
        FailAttempt: {
            delay?: components["schemas"]["Span"] | null;
            error?: components["schemas"]["ReportedError"] | null;
            /** @description Whether a retry could help. Default `true`. */
            retryable?: boolean | null;
        };
        /** @description A pattern for the code or the message of a failure, in which `*` matches anything. */
        FailurePattern: string;
        /** @description The items of a fan-out. */
        FanOutTarget: Record<string, unknown>;
        /**
         * @description What is wrong with a field.
         * @enum {string}
         */
        FieldCode: "malformed" | "invalid_value" | "too_long" | "too_many" | "out_of_range" | "conflict" | "reserved" | "not_supported" | "forbidden_address" | "not_allowed" | "invalid_cron" | "unknown_timezone" | "cycle" | "unknown_task" | "duplicate_task";
        /** @description One bad field. */
        FieldError: {
            /** @description The kind of mistake. */
            code: components["schemas"]["FieldCode"];
            /** @description What is wrong, as a sentence. */
            detail: string;
            /**
             * @description JSON pointer (RFC 6901) into the request body; empty for the whole body.
             * @example /retry/max_retries
             */
            pointer: string;
        };
        /** @description A record of the ledger: one firing, or a span of firings with the same outcome. */
        Fire: {
            /**
             * Format: int64
             * @description How many firings this record covers.
             */
            count: number;
            /**
             * Format: uuid
             * @description The job that it made, or that stands for it.
             */
            job_id?: string | null;
            /** @description For a span: the last time. Otherwise the same as `nominal_time`. */
            last_nominal_time: components["schemas"]["Time"];
            /** @description When it should fire. For a span: the first time. */
            nominal_time: components["schemas"]["Time"];
            /** @description The outcome. */
            outcome: components["schemas"]["FireOutcome"];
            /**
             * @description Why: `on_time`, `caught_up`, `paused`, `excluded_day`, `overlap`, `replaced`, `missed_policy`, `outside_window`,
             *     `over_cap`, `by_request` or, while it waits for an earlier job to end, `queued`.
             */
            reason: string;
            /** @description When the record was written. */
            recorded_at: components["schemas"]["Time"];
        };
        /**
         * @description The outcome of a firing.
         * @enum {string}
         */
        FireOutcome: "fired" | "skipped" | "missed" | "coalesced" | "triggered" | "backfilled";
        /** @description The value of a header: printable ASCII. */
        HeaderValue: string;
        /** @description The state of the server. */
        Health: {
            /** @description `ok` or `ready`. */
            status: string;
        };
        /** @description The answer to a heartbeat. */
        HeartbeatAnswer: {
            /** @description Whether somebody asked the attempt to stop. */
            cancel: boolean;
            /** @description When the attempt must have ended. */
            deadline: components["schemas"]["Time"];
        };
        /** @description An attempt is still running. */
        HeartbeatAttempt: {
            /** @description What it is doing, in words. What is longer than 255 characters is cut. */
            message?: string | null;
            /**
             * Format: double
             * @description How much of it is done, in percent.
             */
            progress?: number | null;
        };
        /** @description An attempt that a worker has. */
        HeldAttempt: {
            /**
             * Format: int32
             * @description The number of the attempt.
             */
            attempt: number;
            deadline?: components["schemas"]["Time"] | null;
            /** @description The job. */
            job_id: components["schemas"]["JobId"];
            started_at?: components["schemas"]["Time"] | null;
            /** @description Its type. */
            type: string;
        };
        /** @description An HTTP endpoint. */
        HttpTarget: {
            /** @description Headers to send in addition to Tickwheel's own, up to 64. */
            headers?: {
                [key: string]: components["schemas"]["HeaderValue"];
            };
            /**
             * @description GET, POST, PUT, PATCH, DELETE or HEAD.
             * @default POST
             */
            method: components["schemas"]["Method"];
            /** @description Absolute `http` or `https` URL without user info. */
            url: components["schemas"]["Url"];
        };
        /** @description A job: its request and its progress. */
        Job: {
            /**
             * Format: int32
             * @description The number of its latest attempt. 0 before the first one.
             */
            attempt: number;
            /** @description The URL that receives the outcome. */
            callback_url?: string | null;
            /** @description Whether somebody asked the running attempt to stop. */
            cancel_requested: boolean;
            completed_at?: components["schemas"]["Time"] | null;
            /** @description The key of a concurrency limit. The server stores it, and does not enforce a limit yet. */
            concurrency_key?: string | null;
            /** @description When it was submitted. */
            created_at: components["schemas"]["Time"];
            /** @description Who submitted it, if the request said so. */
            created_by?: string | null;
            deadline?: components["schemas"]["Time"] | null;
            /** @description Whether the job executes at least once or at most once. */
            delivery: components["schemas"]["Delivery"];
            /** @description Ids of the jobs that must complete first. */
            depends_on: components["schemas"]["JobId"][];
            error?: components["schemas"]["JobError"] | null;
            /** @description When the request asked it to start. */
            execute_at: components["schemas"]["Time"];
            /**
             * Format: uuid
             * @description UUIDv7.
             */
            id: string;
            /**
             * Format: int32
             * @description How many retries it may use.
             */
            max_retries: number;
            /** @description Any facts about the job, as the submitter wrote them. */
            metadata: Record<string, unknown>;
            next_run_at?: components["schemas"]["Time"] | null;
            /** @description The data for the target. A list contains it only if the request asks for it with `include`. */
            payload?: unknown;
            /** @description How urgent it is. */
            priority: components["schemas"]["Priority"];
            /**
             * Format: double
             * @description How much of the work is done, in percent, as the running attempt says. Lists do not contain it.
             */
            progress?: number | null;
            progress_at?: components["schemas"]["Time"] | null;
            /** @description What the running attempt is doing, in its own words. Lists do not contain it. */
            progress_message?: string | null;
            /** @description The queue it waits in. */
            queue: string;
            /** @description What a worker must offer in its labels. */
            requires?: components["schemas"]["Labels"];
            /** @description What the target answered. A list contains it only if the request asks for it with `include`. */
            result?: unknown;
            /**
             * Format: int32
             * @description How many of its retries are used.
             */
            retries: number;
            /** @description How often and when it is tried again after a failure. */
            retry: components["schemas"]["Retry"];
            /** @description The schedule that made it. */
            schedule_id?: string | null;
            started_at?: components["schemas"]["Time"] | null;
            /** @description Its state. */
            status: components["schemas"]["Status"];
            /** @description Labels for finding the job. */
            tags: string[];
            /** @description What executes the job. */
            target: components["schemas"]["AnsweredTarget"];
            /** @description Its task in that run: a name, or a path inside a fan-out, such as `load[3].check`. */
            task?: string | null;
            /** @description The tenant that owns it. */
            tenant: string;
            /** @description How long an attempt may take. */
            timeout: components["schemas"]["Span"];
            /** @description The kind of work: the name of the handler. */
            type: string;
            /** @description The workflow run it belongs to. */
            workflow_run_id?: string | null;
        };
        /** @description Why an attempt failed. */
        JobError: {
            /** @description A stable code in snake_case, such as `http_status`, `connect_failed` or `timed_out`. */
            code: string;
            /** @description What happened, as a sentence. */
            message: string;
            /**
             * @description Whether the message was cut. Only the overview of a run cuts messages, when they are long; the task's own job
             *     has the whole text.
             */
            truncated?: boolean;
        };
        /**
         * Format: uuid
         * @description The id of a job.
         */
        JobId: string;
        /** @description Labels by name. The value is a flag, a number or a text. A job that requires a number needs a worker with at least as much; of a flag or a text it needs exactly that value */
        Labels: {
            [key: string]: boolean | number | string;
        };
        /** @description A page of a list. */
        List_Attempt: {
            /** @description The items, in order. */
            items: {
                ended_at?: components["schemas"]["Time"] | null;
                error?: components["schemas"]["JobError"] | null;
                /**
                 * Format: int32
                 * @description The number of the attempt, beginning with 1. It is also the fencing token.
                 */
                number: number;
                /** @description `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`. `null` while it is running. */
                outcome?: string | null;
                /** @description When it started. */
                started_at: components["schemas"]["Time"];
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_CalendarSummary: {
            /** @description The items, in order. */
            items: {
                /** @description How many days it has. */
                day_count: number;
                /** @description The first day. */
                first_day?: string | null;
                /** @description The last day. */
                last_day?: string | null;
                /** @description Its name. */
                name: string;
                /** @description When it was last changed. */
                updated_at: components["schemas"]["Time"];
                /** @description Weekdays that are excluded as well. */
                weekdays: components["schemas"]["Weekday"][];
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_Callback: {
            /** @description The items, in order. */
            items: {
                /** @description The event it reports: `job.completed`, `job.failed` or `job.cancelled`. */
                event: string;
                /**
                 * Format: int64
                 * @description Its number, which is part of its `webhook-id`.
                 */
                id: number;
                next_try_at?: components["schemas"]["Time"] | null;
                /** @description `pending`, `delivered` or `given_up`. */
                status: string;
                /** @description The tries so far, oldest first. */
                tries: components["schemas"]["CallbackTry"][];
                /** @description The URL that receives it. */
                url: string;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_DeadLetter: {
            /** @description The items, in order. */
            items: {
                /**
                 * Format: int32
                 * @description How many attempts it had.
                 */
                attempts: number;
                error?: components["schemas"]["JobError"] | null;
                /** @description When the server gave it up. */
                failed_at: components["schemas"]["Time"];
                /**
                 * Format: uuid
                 * @description The job.
                 */
                job_id: string;
                /** @description The data for the target. */
                payload: unknown;
                /** @description How urgent it was. */
                priority: components["schemas"]["Priority"];
                /** @description The queue it waited in. */
                queue: string;
                /** @description Why there was no further attempt: `retries_exhausted`, `not_retryable`, `poison_pill` or `at_most_once`. */
                reason: string;
                /** @description Labels for finding the job. */
                tags: string[];
                /** @description The tenant that owns it. */
                tenant: string;
                /** @description The kind of work: the name of the handler. */
                type: string;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_Fire: {
            /** @description The items, in order. */
            items: {
                /**
                 * Format: int64
                 * @description How many firings this record covers.
                 */
                count: number;
                /**
                 * Format: uuid
                 * @description The job that it made, or that stands for it.
                 */
                job_id?: string | null;
                /** @description For a span: the last time. Otherwise the same as `nominal_time`. */
                last_nominal_time: components["schemas"]["Time"];
                /** @description When it should fire. For a span: the first time. */
                nominal_time: components["schemas"]["Time"];
                /** @description The outcome. */
                outcome: components["schemas"]["FireOutcome"];
                /**
                 * @description Why: `on_time`, `caught_up`, `paused`, `excluded_day`, `overlap`, `replaced`, `missed_policy`, `outside_window`,
                 *     `over_cap`, `by_request` or, while it waits for an earlier job to end, `queued`.
                 */
                reason: string;
                /** @description When the record was written. */
                recorded_at: components["schemas"]["Time"];
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_Job: {
            /** @description The items, in order. */
            items: {
                /**
                 * Format: int32
                 * @description The number of its latest attempt. 0 before the first one.
                 */
                attempt: number;
                /** @description The URL that receives the outcome. */
                callback_url?: string | null;
                /** @description Whether somebody asked the running attempt to stop. */
                cancel_requested: boolean;
                completed_at?: components["schemas"]["Time"] | null;
                /** @description The key of a concurrency limit. The server stores it, and does not enforce a limit yet. */
                concurrency_key?: string | null;
                /** @description When it was submitted. */
                created_at: components["schemas"]["Time"];
                /** @description Who submitted it, if the request said so. */
                created_by?: string | null;
                deadline?: components["schemas"]["Time"] | null;
                /** @description Whether the job executes at least once or at most once. */
                delivery: components["schemas"]["Delivery"];
                /** @description Ids of the jobs that must complete first. */
                depends_on: components["schemas"]["JobId"][];
                error?: components["schemas"]["JobError"] | null;
                /** @description When the request asked it to start. */
                execute_at: components["schemas"]["Time"];
                /**
                 * Format: uuid
                 * @description UUIDv7.
                 */
                id: string;
                /**
                 * Format: int32
                 * @description How many retries it may use.
                 */
                max_retries: number;
                /** @description Any facts about the job, as the submitter wrote them. */
                metadata: Record<string, unknown>;
                next_run_at?: components["schemas"]["Time"] | null;
                /** @description The data for the target. A list contains it only if the request asks for it with `include`. */
                payload?: unknown;
                /** @description How urgent it is. */
                priority: components["schemas"]["Priority"];
                /**
                 * Format: double
                 * @description How much of the work is done, in percent, as the running attempt says. Lists do not contain it.
                 */
                progress?: number | null;
                progress_at?: components["schemas"]["Time"] | null;
                /** @description What the running attempt is doing, in its own words. Lists do not contain it. */
                progress_message?: string | null;
                /** @description The queue it waits in. */
                queue: string;
                /** @description What a worker must offer in its labels. */
                requires?: components["schemas"]["Labels"];
                /** @description What the target answered. A list contains it only if the request asks for it with `include`. */
                result?: unknown;
                /**
                 * Format: int32
                 * @description How many of its retries are used.
                 */
                retries: number;
                /** @description How often and when it is tried again after a failure. */
                retry: components["schemas"]["Retry"];
                /** @description The schedule that made it. */
                schedule_id?: string | null;
                started_at?: components["schemas"]["Time"] | null;
                /** @description Its state. */
                status: components["schemas"]["Status"];
                /** @description Labels for finding the job. */
                tags: string[];
                /** @description What executes the job. */
                target: components["schemas"]["AnsweredTarget"];
                /** @description Its task in that run: a name, or a path inside a fan-out, such as `load[3].check`. */
                task?: string | null;
                /** @description The tenant that owns it. */
                tenant: string;
                /** @description How long an attempt may take. */
                timeout: components["schemas"]["Span"];
                /** @description The kind of work: the name of the handler. */
                type: string;
                /** @description The workflow run it belongs to. */
                workflow_run_id?: string | null;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_LogLine: {
            /** @description The items, in order. */
            items: {
                /**
                 * Format: int32
                 * @description The attempt that wrote it.
                 */
                attempt: number;
                /** @description Only while the log is followed: how to go on after this line. */
                cursor?: string | null;
                /** @description Facts beside the text. */
                fields?: Record<string, unknown> | null;
                /** @description How much it matters. */
                level: components["schemas"]["LogLevel"];
                /** @description The text. */
                message: string;
                /**
                 * Format: int64
                 * @description Its number in the log of the attempt, beginning with 0. Lines that never arrived leave a gap.
                 */
                number: number;
                /** @description When the line was written. */
                time: components["schemas"]["Time"];
                /** @description Whether something of it was cut off, because it was longer than a line may be. */
                truncated?: boolean;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_NextFire: {
            /** @description The items, in order. */
            items: {
                /** @description The same time with the offset of the schedule's zone. */
                local_time: components["schemas"]["LocalTime"];
                /** @description The time in UTC. */
                nominal_time: components["schemas"]["Time"];
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_Queue: {
            /** @description The items, in order. */
            items: {
                /** @description Whether there may be more than `waiting`: the server stops counting after 20,000 due jobs. */
                more_waiting?: boolean;
                /** @description Its name. */
                name: string;
                /** @description Whether it is paused. While it is, none of its jobs starts. */
                paused: boolean;
                /**
                 * Format: int64
                 * @description How many of its attempts are running, on the node that answers.
                 */
                running: number;
                /**
                 * Format: int64
                 * @description How many of its jobs are due and wait: for a slot, for a worker, or because the queue is paused.
                 */
                waiting: number;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_RunTask: {
            /** @description The items, in order. */
            items: {
                /**
                 * Format: int32
                 * @description The number of its latest attempt. 0 before the first one.
                 */
                attempt: number;
                completed_at?: components["schemas"]["Time"] | null;
                /** @description The names of the tasks it depends on. */
                depends_on: string[];
                due_at?: components["schemas"]["Time"] | null;
                error?: components["schemas"]["JobError"] | null;
                /**
                 * Format: int32
                 * @description The index of its element, beginning with 0. Only for an item of a fan-out.
                 */
                item?: number | null;
                items?: components["schemas"]["RunItems"] | null;
                /**
                 * Format: uuid
                 * @description The job that executes it. `null` while there is none.
                 */
                job_id?: string | null;
                /** @description Its name, or its path inside a fan-out, such as `load[3]` or `load[3].check`. */
                name: string;
                started_at?: components["schemas"]["Time"] | null;
                /** @description Its state. A fan-out is running while one of its items is. */
                status: components["schemas"]["Status"];
                /** @description When it may start, depending on how those tasks ended. */
                trigger_rule: components["schemas"]["TriggerRule"];
                /** @description The kind of work: the name of the handler. */
                type: string;
                /** @description What it waits for, as a sentence. Only for a task that waits for other tasks, or for its run to be resumed. */
                why_waiting?: string | null;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_Schedule: {
            /** @description The items, in order. */
            items: {
                anchor?: components["schemas"]["Time"] | null;
                backfill?: components["schemas"]["Backfill"] | null;
                /** @description When it was created. */
                created_at: components["schemas"]["Time"];
                /** @description The expression. `null` if the schedule has an interval. */
                cron?: string | null;
                /** @description How the two day fields combine. */
                day_logic: components["schemas"]["DayLogic"];
                /**
                 * @description When it fires, in words.
                 * @example at 02:00 every day
                 */
                description: string;
                /** @description What happens to times that occur twice. */
                dst_fold: components["schemas"]["DstFold"];
                /** @description What happens to times that the clock skips. */
                dst_gap: components["schemas"]["DstGap"];
                end_at?: components["schemas"]["Time"] | null;
                every?: components["schemas"]["Span"] | null;
                /** @description Days on which it does not fire. */
                exclude: string[];
                /**
                 * Format: uuid
                 * @description UUIDv7.
                 */
                id: string;
                /** @description Its jobs start up to this long after their time. */
                jitter: components["schemas"]["Span"];
                /** @description The job that each firing makes. */
                job: components["schemas"]["SubmitJob"];
                /** @description Its latest firings, up to ten, latest first. */
                last_fires: components["schemas"]["Fire"][];
                /** @description How the server makes up for missed firings. */
                missed: components["schemas"]["Missed"];
                /** @description The name, which is unique. */
                name: string;
                /** @description Whether it will never fire again: the date does not exist, the end is past, or every weekday is excluded. */
                never: boolean;
                next_fire_at?: components["schemas"]["Time"] | null;
                /** @description What happens to firings on those days. */
                on_excluded: components["schemas"]["OnExcluded"];
                /** @description What happens to a firing while an earlier job has not ended. */
                overlap: components["schemas"]["Overlap"];
                /** @description Why it is paused, in the words of whoever paused it. */
                pause_note?: string | null;
                /** @description Whether it is paused. While it is, it does not fire. */
                paused: boolean;
                queued_since?: components["schemas"]["Time"] | null;
                start_at?: components["schemas"]["Time"] | null;
                /** @description The tenant that owns it. */
                tenant: string;
                /** @description The time zone, as the time-zone database spells it. */
                timezone: string;
                /** @description When it was last changed, paused or resumed. */
                updated_at: components["schemas"]["Time"];
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_Worker: {
            /** @description The items, in order. */
            items: {
                /**
                 * Format: int32
                 * @description How many jobs it runs at once.
                 */
                capacity: number;
                /** @description The built-in executors that it has. */
                executors?: components["schemas"]["ExecutorKind"][];
                /** @description The machine it is on. */
                host?: string | null;
                /** @description Its session. */
                id: string;
                /** @description What it offers to jobs with `requires`. */
                labels: components["schemas"]["Labels"];
                last_poll?: components["schemas"]["Time"] | null;
                /** @description When it was last heard of. */
                last_seen: components["schemas"]["Time"];
                /** @description How long its lease is. */
                lease: components["schemas"]["Span"];
                /** @description When its jobs go to others unless it is heard of. */
                lease_ends_at: components["schemas"]["Time"];
                /** @description The library it is written with. */
                library?: string | null;
                /** @description Its name. */
                name: string;
                /**
                 * Format: int32
                 * @description Its process id.
                 */
                pid?: number | null;
                /** @description The queues that it serves. */
                queues: string[];
                /** @description When it registered. */
                registered_at: components["schemas"]["Time"];
                /**
                 * Format: int64
                 * @description How many it has now.
                 */
                running: number;
                /** @description What it is doing. */
                state: components["schemas"]["WorkerState"];
                /**
                 * Format: int64
                 * @description How many of its slots are taken by handlers that do not end.
                 */
                stuck: number;
                /** @description The types that it has a handler for. */
                types: string[];
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_WorkflowRun: {
            /** @description The items, in order. */
            items: {
                /** @description Whether somebody asked the run to stop. */
                cancel_requested: boolean;
                /** @description When it was started. */
                created_at: components["schemas"]["Time"];
                ended_at?: components["schemas"]["Time"] | null;
                /**
                 * Format: uuid
                 * @description UUIDv7.
                 */
                id: string;
                /** @description The input of the run. */
                input: unknown;
                /**
                 * Format: uuid
                 * @description The job that started the run and waits for it, if there is one.
                 */
                job_id?: string | null;
                paused_at?: components["schemas"]["Time"] | null;
                /**
                 * Format: int32
                 * @description How many of its tasks have waited too long.
                 */
                stalled: number;
                /** @description Its state. */
                status: components["schemas"]["RunStatus"];
                /** @description Its tasks in the order of the definition: `before` first, `after` last. Not part of lists. */
                tasks?: components["schemas"]["RunTask"][] | null;
                /**
                 * Format: int32
                 * @description How many of its tasks have not ended.
                 */
                tasks_open: number;
                /**
                 * Format: int32
                 * @description How many tasks it has so far, including the items of fan-outs.
                 */
                tasks_total: number;
                /** @description The tenant that owns it. */
                tenant: string;
                /**
                 * Format: int32
                 * @description The version of its workflow.
                 */
                version: number;
                /** @description The name of its workflow. */
                workflow: string;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        List_WorkflowSummary: {
            /** @description The items, in order. */
            items: {
                /** @description When this version was stored. */
                created_at: components["schemas"]["Time"];
                /** @description What the workflow is for. */
                description?: string | null;
                /** @description The name, which is unique. */
                name: string;
                schedule?: components["schemas"]["WorkflowSchedule"] | null;
                /** @description How many tasks it has, including those inside fan-outs. */
                tasks_total: number;
                /** @description The tenant that owns it. */
                tenant: string;
                /**
                 * Format: int32
                 * @description The version, beginning with 1.
                 */
                version: number;
            }[];
            /**
             * @description The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
             *     one.
             */
            next_cursor?: string | null;
        };
        /**
         * Format: date-time
         * @description RFC 3339 with the offset of the zone
         */
        LocalTime: string;
        /**
         * @description How much a line of a log matters.
         * @enum {string}
         */
        LogLevel: "debug" | "info" | "warn" | "error";
        /** @description One line of an attempt's log. */
        LogLine: {
            /**
             * Format: int32
             * @description The attempt that wrote it.
             */
            attempt: number;
            /** @description Only while the log is followed: how to go on after this line. */
            cursor?: string | null;
            /** @description Facts beside the text. */
            fields?: Record<string, unknown> | null;
            /** @description How much it matters. */
            level: components["schemas"]["LogLevel"];
            /** @description The text. */
            message: string;
            /**
             * Format: int64
             * @description Its number in the log of the attempt, beginning with 0. Lines that never arrived leave a gap.
             */
            number: number;
            /** @description When the line was written. */
            time: components["schemas"]["Time"];
            /** @description Whether something of it was cut off, because it was longer than a line may be. */
            truncated?: boolean;
        };
        /**
         * @description GET, POST, PUT, PATCH, DELETE or HEAD.
         * @enum {string}
         */
        Method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD";
        /**
         * @description How the server makes up for missed firings. Fields that you leave out have their defaults in a new schedule, and
         *     keep their values in a change. An answer contains all of them.
         */
        Missed: {
            /**
             * Format: int32
             * @description With `backfill`: how many firings to make up for. Default 100.
             */
            max_backfill?: number | null;
            policy?: components["schemas"]["MissedPolicy"] | null;
            window?: components["schemas"]["Span"] | null;
        };
        /**
         * @description What happens to firings whose time passed while no server could act on them.
         * @enum {string}
         */
        MissedPolicy: "skip" | "fire_once" | "backfill";
        /** @description A name or a key, without control characters. */
        Name: string;
        /** @description A firing in the future. */
        NextFire: {
            /** @description The same time with the offset of the schedule's zone. */
            local_time: components["schemas"]["LocalTime"];
            /** @description The time in UTC. */
            nominal_time: components["schemas"]["Time"];
        };
        /** @description A URL and the events of which it is notified. */
        Notify: {
            /** @description The events. Default: how the run ended (`completed`, `failed`, `cancelled`). */
            on?: components["schemas"]["RunEvent"][] | null;
            /** @description The URL. */
            url: components["schemas"]["Url"];
        };
        /**
         * @description What happens to a firing on an excluded day.
         * @enum {string}
         */
        OnExcluded: "skip" | "next_day";
        /**
         * @description What happens to a run when a task fails for good.
         * @enum {string}
         */
        OnFailure: "fail_fast" | "continue";
        /** @description An effect was not carried out. */
        OnceAbandon: {
            scope?: components["schemas"]["OnceScope"] | null;
        };
        /** @description The answer to an attempt that asks. */
        OnceAnswer: {
            /** @description What came of it, if it is done. */
            result?: unknown;
            retry_in?: components["schemas"]["Span"] | null;
            /** @description How the effect stands. */
            state: components["schemas"]["OnceState"];
        };
        /** @description An effect was carried out. */
        OnceDone: {
            /** @description What came of it: any JSON, up to 64 KiB. Default `null`. */
            result?: unknown;
            scope?: components["schemas"]["OnceScope"] | null;
        };
        /**
         * @description For whom the key of an effect is the same.
         * @enum {string}
         */
        OnceScope: "job" | "tenant";
        /**
         * @description How an effect stands.
         * @enum {string}
         */
        OnceState: "first" | "done" | "busy" | "in_doubt";
        /**
         * @description What happens to a firing while a job of an earlier firing has not ended.
         * @enum {string}
         */
        Overlap: "allow" | "skip" | "queue" | "replace";
        /** @description New values for a job that has not started. Fields that you leave out keep their value. */
        PatchJob: {
            execute_at?: components["schemas"]["Time"] | null;
            /** @description The data for the target. `null` is a value here and replaces the payload. */
            payload?: unknown;
            priority?: components["schemas"]["Priority"] | null;
            status?: components["schemas"]["PatchStatus"] | null;
            /** @description Labels for finding the job. */
            tags?: components["schemas"]["Name"][] | null;
        };
        /**
         * @description New values for a schedule. They apply from the next firing on. Fields that you leave out keep their value. The name
         *     cannot change.
         */
        PatchSchedule: {
            anchor?: components["schemas"]["Time"] | null;
            cron?: components["schemas"]["Cron"] | null;
            day_logic?: components["schemas"]["DayLogic"] | null;
            dst_fold?: components["schemas"]["DstFold"] | null;
            dst_gap?: components["schemas"]["DstGap"] | null;
            end_at?: components["schemas"]["Time"] | null;
            every?: components["schemas"]["Span"] | null;
            /** @description Days on which it does not fire. They replace the earlier ones. */
            exclude?: components["schemas"]["ExcludedDays"][] | null;
            jitter?: components["schemas"]["Span"] | null;
            job?: components["schemas"]["SubmitJob"] | null;
            missed?: components["schemas"]["Missed"] | null;
            on_excluded?: components["schemas"]["OnExcluded"] | null;
            overlap?: components["schemas"]["Overlap"] | null;
            /** @description `true` pauses it, `false` resumes it. */
            paused?: boolean | null;
            start_at?: components["schemas"]["Time"] | null;
            timezone?: components["schemas"]["TimeZone"] | null;
        };
        /**
         * @description The states that a change can ask for.
         * @enum {string}
         */
        PatchStatus: "paused" | "scheduled";
        /** @description A path into data: as a string, or as `{"$from": "path"}`, which means the same */
        Path: string | {
            /** Format: data-path */
            $from: string;
        };
        /** @description A request to pause a schedule. */
        PauseSchedule: {
            note?: components["schemas"]["Name"] | null;
        };
        /** @description A schedule without the fields that only a stored one has. */
        PlannedSchedule: {
            anchor?: components["schemas"]["Time"] | null;
            /** @description The expression. `null` if the schedule has an interval. */
            cron?: string | null;
            /** @description How the two day fields combine. */
            day_logic: components["schemas"]["DayLogic"];
            /**
             * @description When it fires, in words.
             * @example at 02:00 every day
             */
            description: string;
            /** @description What happens to times that occur twice. */
            dst_fold: components["schemas"]["DstFold"];
            /** @description What happens to times that the clock skips. */
            dst_gap: components["schemas"]["DstGap"];
            end_at?: components["schemas"]["Time"] | null;
            every?: components["schemas"]["Span"] | null;
            /** @description Days on which it does not fire. */
            exclude: string[];
            /** @description Its jobs start up to this long after their time. */
            jitter: components["schemas"]["Span"];
            /** @description The job that each firing makes. */
            job: components["schemas"]["SubmitJob"];
            /** @description How the server makes up for missed firings. */
            missed: components["schemas"]["Missed"];
            /** @description The name, which is unique. */
            name: string;
            /** @description Whether it will never fire. */
            never: boolean;
            next_fire_at?: components["schemas"]["Time"] | null;
            /** @description What happens to firings on those days. */
            on_excluded: components["schemas"]["OnExcluded"];
            /** @description What happens to a firing while an earlier job has not ended. */
            overlap: components["schemas"]["Overlap"];
            /** @description Whether it is paused. While it is, it does not fire. */
            paused: boolean;
            start_at?: components["schemas"]["Time"] | null;
            /** @description The time zone, as the time-zone database spells it. */
            timezone: string;
        };
        /** @description A worker asks for jobs. */
        PollWorker: {
            /**
             * Format: int32
             * @description How many jobs it has room for. 0 asks only for `cancel`, `lost` and `drain`. Default 1.
             */
            max?: number | null;
            /**
             * Format: int64
             * @description The number of this poll. The same number again gets the same jobs again; a higher one says that the last answer
             *     has arrived.
             */
            seq?: number | null;
            slots?: components["schemas"]["Slots"] | null;
            wait?: components["schemas"]["Span"] | null;
        };
        /** @description The answer to a poll. */
        PolledJobs: {
            /** @description Tokens of attempts that somebody wants stopped. */
            cancel: string[];
            /** @description The worker is to finish what it has and take nothing new. */
            drain: boolean;
            /** @description The jobs that the worker is to run now. They are its own already. */
            jobs: components["schemas"]["Assignment"][];
            /** @description Tokens of attempts that are not the worker's own any more. */
            lost: string[];
            /**
             * Format: int64
             * @description The number of the poll, if it had one.
             */
            seq?: number | null;
        };
        /** @description A question: when would this expression fire? Either `cron` or `every` is required. */
        PreviewCron: {
            after?: components["schemas"]["Time"] | null;
            /**
             * Format: int32
             * @description How many firings to show. Default 5.
             */
            count?: number | null;
            cron?: components["schemas"]["Cron"] | null;
            day_logic?: components["schemas"]["DayLogic"] | null;
            dst_fold?: components["schemas"]["DstFold"] | null;
            dst_gap?: components["schemas"]["DstGap"] | null;
            every?: components["schemas"]["Span"] | null;
            timezone?: components["schemas"]["TimeZone"] | null;
        };
        /**
         * @description How urgent a job is. Jobs of a higher priority always start first.
         * @enum {string}
         */
        Priority: "critical" | "high" | "normal" | "low";
        /** @description Why a request was rejected (RFC 9457). */
        Problem: {
            /**
             * @description A stable code for the kind of problem.
             * @example validation_failed
             */
            code: string;
            /** @description What happened in this case. */
            detail: string;
            /** @description Every bad field. */
            errors?: components["schemas"]["FieldError"][];
            /**
             * Format: int32
             * @description The HTTP status.
             * @example 422
             */
            status: number;
            /** @description A short summary of the kind of problem. */
            title: string;
            /**
             * @description A URI that identifies the kind of problem.
             * @example urn:tickwheel:problem:validation_failed
             */
            type: string;
        };
        /** @description A command. No shell is involved unless the command is one. */
        ProcessTarget: {
            /**
             * @description The program and its arguments: up to 1000 words and 100,000 bytes together. A program without a slash is
             *     searched for in `PATH`.
             * @example [
             *       "/usr/bin/backup",
             *       "--full"
             *     ]
             */
            command: components["schemas"]["Word"][];
            cwd?: components["schemas"]["Directory"] | null;
            /**
             * @description Environment variables, up to 256 and 100,000 bytes together, in addition to those that the operator passes on
             *     and to Tickwheel's own (`TICKWHEEL_…`).
             */
            env?: {
                [key: string]: components["schemas"]["Word"];
            };
            /** @description What its exit codes mean. By default 0 completes the job, and every other code is a failure that is retried. */
            exit_codes?: components["schemas"]["ExitCodes"];
            /** @description What the process reads from its standard input. */
            stdin?: components["schemas"]["Stdin"];
        };
        /** @description A text of several lines, without control characters other than tabs and line ends. */
        Prose: string;
        /** @description A range of protocol versions. Both ends are included. */
        ProtocolRange: {
            /**
             * Format: int32
             * @description The newest.
             */
            max: number;
            /**
             * Format: int32
             * @description The oldest.
             */
            min: number;
        };
        /** @description A calendar to store. It replaces one of the same name. */
        PutCalendar: {
            /** @description The days: `2026-12-25`, or `2026-12-24/2026-12-31` for a range that includes both. Up to 10,000 days. */
            days?: components["schemas"]["Days"][];
            /** @description Weekdays that are excluded as well. */
            weekdays?: components["schemas"]["Weekday"][];
        };
        /**
         * @description A schedule to create, or to put in the place of the one with its name. `job` and either `cron` or `every`
         *     are required.
         */
        PutSchedule: {
            anchor?: components["schemas"]["Time"] | null;
            cron?: components["schemas"]["Cron"] | null;
            day_logic?: components["schemas"]["DayLogic"] | null;
            dst_fold?: components["schemas"]["DstFold"] | null;
            dst_gap?: components["schemas"]["DstGap"] | null;
            end_at?: components["schemas"]["Time"] | null;
            every?: components["schemas"]["Span"] | null;
            /** @description Days on which it does not fire: `2026-12-25`, `2026-12-24/2026-12-31` or `calendar:holidays`. */
            exclude?: components["schemas"]["ExcludedDays"][] | null;
            jitter?: components["schemas"]["Span"] | null;
            /** @description The job that each firing makes: a job without `execute_at`, `delay`, `idempotency_key` and `depends_on`. */
            job: components["schemas"]["SubmitJob"];
            missed?: components["schemas"]["Missed"] | null;
            name?: components["schemas"]["Name"] | null;
            on_excluded?: components["schemas"]["OnExcluded"] | null;
            overlap?: components["schemas"]["Overlap"] | null;
            /** @description Whether the schedule is paused. Default `false` in a new schedule. One that exists stays as it is. */
            paused?: boolean | null;
            start_at?: components["schemas"]["Time"] | null;
            timezone?: components["schemas"]["TimeZone"] | null;
        };
        /** @description A queue. */
        Queue: {
            /** @description Whether there may be more than `waiting`: the server stops counting after 20,000 due jobs. */
            more_waiting?: boolean;
            /** @description Its name. */
            name: string;
            /** @description Whether it is paused. While it is, none of its jobs starts. */
            paused: boolean;
            /**
             * Format: int64
             * @description How many of its attempts are running, on the node that answers.
             */
            running: number;
            /**
             * Format: int64
             * @description How many of its jobs are due and wait: for a slot, for a worker, or because the queue is paused.
             */
            waiting: number;
        };
        /** @description A request to run a dead letter again. */
        Redrive: {
            /** @description A new payload. `null` is a value here and replaces the payload. */
            payload?: unknown;
        };
        /** @description A request to run several dead letters again. An empty request is rejected: to redrive all of them, say so. */
        RedriveFilter: {
            /** @description Redrive all that match the other fields. Required unless `type` or `queue` is given. */
            all?: boolean;
            /**
             * Format: date-time
             * @description Only jobs that were given up before this time. Default: the time of the request. A second request with the
             *     `failed_before` of an earlier answer redrives no job twice.
             */
            failed_before?: string | null;
            /** @description How many to redrive, up to 1,000, latest first. Default: all. */
            limit?: number | null;
            queue?: components["schemas"]["Name"] | null;
            type?: components["schemas"]["Name"] | null;
        };
        /** @description A redrive and its progress. */
        RedriveProgress: {
            /** @description Why it stopped. */
            error?: string | null;
            /** @description It redrives only jobs that were given up before this time, each of them once. */
            failed_before: components["schemas"]["Time"];
            /**
             * Format: uuid
             * @description Its id. Valid until the server stops.
             */
            id: string;
            /**
             * Format: int64
             * @description How many jobs will run again.
             */
            redriven: number;
            /**
             * Format: int64
             * @description How many matching dead letters are left.
             */
            remaining: number;
            /** @description Its state. */
            status: components["schemas"]["RedriveStatus"];
        };
        /**
         * @description The state of a redrive.
         * @enum {string}
         */
        RedriveStatus: "running" | "completed" | "stopped";
        /** @description A worker that wants to run jobs. */
        RegisterWorker: {
            /**
             * Format: int32
             * @description How many jobs it runs at once. Default 1.
             */
            capacity?: number | null;
            /** @description The built-in executors that it has: it runs jobs with a target of these kinds that require labels which it has. */
            executors?: components["schemas"]["ExecutorKind"][] | null;
            host?: components["schemas"]["Name"] | null;
            instance?: components["schemas"]["JobId"] | null;
            labels?: components["schemas"]["Labels"] | null;
            lease?: components["schemas"]["Span"] | null;
            library?: components["schemas"]["Name"] | null;
            /** @description A name for people. Several workers may share it. */
            name: components["schemas"]["Name"];
            /**
             * Format: int32
             * @description Its process id.
             */
            pid?: number | null;
            /**
             * Format: int32
             * @description The version of the worker protocol that it speaks. Default 1.
             */
            protocol?: number | null;
            /** @description The queues that it serves. Default: `default`. */
            queues?: components["schemas"]["Name"][] | null;
            /**
             * @description The types of jobs that it has a handler for. At least one, unless it has `executors`.
             * @example [
             *       "send_email"
             *     ]
             */
            types: components["schemas"]["Name"][];
        };
        /** @description A session was opened. */
        RegisteredWorker: {
            /** @description How often it should send a heartbeat. */
            heartbeat_interval: components["schemas"]["Span"];
            /** @description How long its jobs stay its own when it falls silent. */
            lease: components["schemas"]["Span"];
            /** @description How large its requests may be. */
            limits: components["schemas"]["WorkerLimits"];
            /** @description How long a poll waits if it does not say. */
            poll_wait: components["schemas"]["Span"];
            /** @description The session: part of the address of all other calls. */
            worker_id: string;
        };
        /** @description A rejected report. */
        RejectedReport: {
            /** @description Why. */
            error: components["schemas"]["Problem"];
        };
        /** @description The ends of attempts, up to 1,000. */
        ReportAttempts: {
            /** @description The ends. */
            reports: components["schemas"]["AttemptReport"][];
        };
        /** @description The answer to one report: it was accepted, now or before, or it is rejected. */
        ReportResult: components["schemas"]["AcceptedReport"] | components["schemas"]["RejectedReport"];
        /** @description The answer to reports: one per report, in order. */
        ReportResults: {
            /** @description The answers. */
            results: components["schemas"]["ReportResult"][];
        };
        /** @description Why an attempt failed, in the words of its target. */
        ReportedError: string | components["schemas"]["CodedError"];
        /** @description A line of a log. */
        ReportedLine: {
            age?: components["schemas"]["Span"] | null;
            /** @description Facts beside the text. */
            fields?: Record<string, unknown> | null;
            level?: components["schemas"]["LogLevel"] | null;
            /** @description The text. A line of more than 16 KiB, with its fields, is cut. */
            message: string;
        };
        /** @description Lines of a log. */
        ReportedLines: {
            /**
             * Format: int64
             * @description The number of the first line, beginning with 0 in each attempt. A line that was sent before is not added again.
             */
            first: number;
            /** @description The lines, numbered from there on. */
            lines: components["schemas"]["ReportedLine"][];
        };
        /**
         * @description How an attempt ended, in the words of its worker.
         * @enum {string}
         */
        ReportedOutcome: "completed" | "failed" | "snoozed" | "cancelled" | "released" | "not_started" | "accepted";
        /**
         * @description How often and how soon a failed job is tried again. In a request, fields that you leave out have their defaults. An
         *     answer contains every field that applies.
         */
        Retry: {
            backoff?: components["schemas"]["Backoff"] | null;
            /** @description The delays, in order. The last one repeats. */
            delays?: components["schemas"]["Span"][] | null;
            initial_delay?: components["schemas"]["Span"] | null;
            /**
             * Format: double
             * @description By which fraction of itself (0 to 1) a delay may be shorter or longer. Default 0.1, or 0 if `delays` is given.
             */
            jitter?: number | null;
            max_delay?: components["schemas"]["Span"] | null;
            /**
             * Format: int32
             * @description How many retries follow the first attempt. Default 3, or the length of `delays`.
             */
            max_retries?: number | null;
            /**
             * @description Failures that are not retried: patterns for their code or message, in which `*` matches anything, such as
             *     `timed_out` or `*answered 409*`.
             * @example [
             *       "timed_out",
             *       "*answered 409*"
             *     ]
             */
            non_retryable?: components["schemas"]["FailurePattern"][] | null;
        };
        /**
         * @description An event of a run that can be notified.
         * @enum {string}
         */
        RunEvent: "running" | "completed" | "failed" | "cancelled" | "stalled";
        /** @description The items of a fan-out by state. All counts except `total` and `released` add up to `total`. */
        RunItems: {
            /**
             * Format: int32
             * @description How many were cancelled.
             */
            cancelled: number;
            /**
             * Format: int32
             * @description How many completed.
             */
            completed: number;
            /**
             * Format: int32
             * @description How many failed, or cannot go on because a task inside them failed.
             */
            failed: number;
            /**
             * Format: int32
             * @description How many have been released to run so far.
             */
            released: number;
            /**
             * Format: int32
             * @description How many are running.
             */
            running: number;
            /**
             * Format: int32
             * @description How many were skipped.
             */
            skipped: number;
            /**
             * Format: int32
             * @description How many items there are.
             */
            total: number;
            /**
             * Format: int32
             * @description How many have not started.
             */
            waiting: number;
        };
        /**
         * @description The state of a run.
         * @enum {string}
         */
        RunStatus: "running" | "completed" | "failed" | "cancelled" | "paused";
        /** @description A task of a run, or one item of a fan-out. */
        RunTask: {
            /**
             * Format: int32
             * @description The number of its latest attempt. 0 before the first one.
             */
            attempt: number;
            completed_at?: components["schemas"]["Time"] | null;
            /** @description The names of the tasks it depends on. */
            depends_on: string[];
            due_at?: components["schemas"]["Time"] | null;
            error?: components["schemas"]["JobError"] | null;
            /**
             * Format: int32
             * @description The index of its element, beginning with 0. Only for an item of a fan-out.
             */
            item?: number | null;
            items?: components["schemas"]["RunItems"] | null;
            /**
             * Format: uuid
             * @description The job that executes it. `null` while there is none.
             */
            job_id?: string | null;
            /** @description Its name, or its path inside a fan-out, such as `load[3]` or `load[3].check`. */
            name: string;
            started_at?: components["schemas"]["Time"] | null;
            /** @description Its state. A fan-out is running while one of its items is. */
            status: components["schemas"]["Status"];
            /** @description When it may start, depending on how those tasks ended. */
            trigger_rule: components["schemas"]["TriggerRule"];
            /** @description The kind of work: the name of the handler. */
            type: string;
            /** @description What it waits for, as a sentence. Only for a task that waits for other tasks, or for its run to be resumed. */
            why_waiting?: string | null;
        };
        /** @description A schedule: its settings and its progress. */
        Schedule: {
            anchor?: components["schemas"]["Time"] | null;
            backfill?: components["schemas"]["Backfill"] | null;
            /** @description When it was created. */
            created_at: components["schemas"]["Time"];
            /** @description The expression. `null` if the schedule has an interval. */
            cron?: string | null;
            /** @description How the two day fields combine. */
            day_logic: components["schemas"]["DayLogic"];
            /**
             * @description When it fires, in words.
             * @example at 02:00 every day
             */
            description: string;
            /** @description What happens to times that occur twice. */
            dst_fold: components["schemas"]["DstFold"];
            /** @description What happens to times that the clock skips. */
            dst_gap: components["schemas"]["DstGap"];
            end_at?: components["schemas"]["Time"] | null;
            every?: components["schemas"]["Span"] | null;
            /** @description Days on which it does not fire. */
            exclude: string[];
            /**
             * Format: uuid
             * @description UUIDv7.
             */
            id: string;
            /** @description Its jobs start up to this long after their time. */
            jitter: components["schemas"]["Span"];
            /** @description The job that each firing makes. */
            job: components["schemas"]["SubmitJob"];
            /** @description Its latest firings, up to ten, latest first. */
            last_fires: components["schemas"]["Fire"][];
            /** @description How the server makes up for missed firings. */
            missed: components["schemas"]["Missed"];
            /** @description The name, which is unique. */
            name: string;
            /** @description Whether it will never fire again: the date does not exist, the end is past, or every weekday is excluded. */
            never: boolean;
            next_fire_at?: components["schemas"]["Time"] | null;
            /** @description What happens to firings on those days. */
            on_excluded: components["schemas"]["OnExcluded"];
            /** @description What happens to a firing while an earlier job has not ended. */
            overlap: components["schemas"]["Overlap"];
            /** @description Why it is paused, in the words of whoever paused it. */
            pause_note?: string | null;
            /** @description Whether it is paused. While it is, it does not fire. */
            paused: boolean;
            queued_since?: components["schemas"]["Time"] | null;
            start_at?: components["schemas"]["Time"] | null;
            /** @description The tenant that owns it. */
            tenant: string;
            /** @description The time zone, as the time-zone database spells it. */
            timezone: string;
            /** @description When it was last changed, paused or resumed. */
            updated_at: components["schemas"]["Time"];
        };
        /** @description What a schedule would be, and when it would fire. Nothing is stored. */
        SchedulePreview: {
            /** @description Its next firings in order, with the offset of the zone. For a paused schedule: the firings it would have. */
            next: components["schemas"]["LocalTime"][];
            /** @description The schedule, with every default filled in. */
            schedule: components["schemas"]["PlannedSchedule"];
        };
        /** @description The answer of `GET /api/v1/server`: what a library has to know before it uses anything else. */
        ServerInfo: {
            /** @description What it can do beyond the first version. */
            features: string[];
            /** @description The version of the server. */
            version: string;
            /** @description The versions of the worker protocol that it speaks. */
            worker_protocol: components["schemas"]["ProtocolRange"];
        };
        /** @description How many jobs of a type there is room for, by type. Other types are bound by `max` alone */
        Slots: {
            [key: string]: number;
        };
        /** @description Codes with which a process asks to run again later. That is no failure and costs no retry. */
        Snooze: {
            /**
             * @description The codes.
             * @example [
             *       75
             *     ]
             */
            codes: components["schemas"]["ExitCode"][];
            /** @description How long to wait, 1s or longer. */
            delay: components["schemas"]["Span"];
        };
        /** @description A number of seconds, or a string with a unit: ms, s, m, h or d; answered as a string */
        Span: string | number;
        /** @description A request to start a run. All fields are optional. */
        StartRun: {
            idempotency_key?: components["schemas"]["Name"] | null;
            /** @description The input of the run: any JSON. Default `null`. */
            input?: unknown;
        };
        /**
         * @description The state of a job.
         * @enum {string}
         */
        Status: "pending" | "scheduled" | "dispatched" | "running" | "completed" | "failed" | "cancelled" | "paused" | "blocked" | "skipped";
        /**
         * @description What a process reads from its standard input.
         * @enum {string}
         */
        Stdin: "payload" | "text" | "none";
        /** @description A job to submit. Only `type` is required. */
        SubmitJob: {
            callback_url?: components["schemas"]["Url"] | null;
            concurrency_key?: components["schemas"]["Name"] | null;
            created_by?: components["schemas"]["Name"] | null;
            delay?: components["schemas"]["Span"] | null;
            delivery?: components["schemas"]["Delivery"] | null;
            /** @description Ids of the jobs that must complete first. An id that occurs twice counts once. */
            depends_on?: components["schemas"]["JobId"][] | null;
            execute_at?: components["schemas"]["Time"] | null;
            idempotency_key?: components["schemas"]["Name"] | null;
            /** @description Any facts about the job, as a JSON object. The server only stores them. */
            metadata?: Record<string, unknown> | null;
            /** @description The data for the target: any JSON. */
            payload?: unknown;
            priority?: components["schemas"]["Priority"] | null;
            queue?: components["schemas"]["Name"] | null;
            requires?: components["schemas"]["Labels"] | null;
            retry?: components["schemas"]["Retry"] | null;
            /** @description Labels for finding the job. */
            tags?: components["schemas"]["Name"][] | null;
            target?: components["schemas"]["Target"] | null;
            timeout?: components["schemas"]["Span"] | null;
            /** @description The kind of work: the name of the handler. */
            type: components["schemas"]["Name"];
        };
        /** @description A schedule to create. `name`, `job` and either `cron` or `every` are required. */
        SubmitSchedule: {
            anchor?: components["schemas"]["Time"] | null;
            cron?: components["schemas"]["Cron"] | null;
            day_logic?: components["schemas"]["DayLogic"] | null;
            dst_fold?: components["schemas"]["DstFold"] | null;
            dst_gap?: components["schemas"]["DstGap"] | null;
            end_at?: components["schemas"]["Time"] | null;
            every?: components["schemas"]["Span"] | null;
            /** @description Days on which it does not fire: `2026-12-25`, `2026-12-24/2026-12-31` or `calendar:holidays`. */
            exclude?: components["schemas"]["ExcludedDays"][] | null;
            jitter?: components["schemas"]["Span"] | null;
            /** @description The job that each firing makes: a job without `execute_at`, `delay`, `idempotency_key` and `depends_on`. */
            job: components["schemas"]["SubmitJob"];
            missed?: components["schemas"]["Missed"] | null;
            /** @description The name, which must be unique. */
            name: components["schemas"]["Name"];
            on_excluded?: components["schemas"]["OnExcluded"] | null;
            overlap?: components["schemas"]["Overlap"] | null;
            /** @description Whether the schedule is paused. Default `false` in a new schedule. One that exists stays as it is. */
            paused?: boolean | null;
            start_at?: components["schemas"]["Time"] | null;
            timezone?: components["schemas"]["TimeZone"] | null;
        };
        /** @description A workflow to store. `name` and `tasks` are required. */
        SubmitWorkflow: {
            /** @description Tasks that run after all others have ended, with any outcome. */
            after?: components["schemas"]["WorkflowTask"][] | null;
            /** @description Tasks that run before all others. */
            before?: components["schemas"]["WorkflowTask"][] | null;
            description?: components["schemas"]["Prose"] | null;
            /** @description The name, which is unique. Storing a workflow under an existing name makes a new version. */
            name: components["schemas"]["WorkflowName"];
            /** @description Which URLs are notified of its runs. */
            notify?: components["schemas"]["Notify"][] | null;
            on_failure?: components["schemas"]["OnFailure"] | null;
            schedule?: components["schemas"]["WorkflowSchedule"] | null;
            stall_after?: components["schemas"]["Span"] | null;
            /** @description Its tasks. */
            tasks: components["schemas"]["WorkflowTask"][];
        };
        /** @description The state of the node that answers. */
        SystemStatus: {
            /**
             * Format: int64
             * @description How many dead letters there are.
             */
            dead_letters: number;
            /** @description Whether the stop switch is on. While it is, no job starts. */
            halted: boolean;
            /**
             * Format: int64
             * @description How many attempts are running.
             */
            running: number;
            /**
             * Format: int64
             * @description How many attempts this node can run at once.
             */
            slots: number;
            /**
             * Format: int64
             * @description How many of these slots are free.
             */
            slots_free: number;
            /**
             * Format: int64
             * @description How many jobs are due and wait, counted like those of the queues.
             */
            waiting: number;
        };
        /** @description What executes a job: exactly one of these */
        Target: {
            http: components["schemas"]["HttpTarget"];
        } | {
            worker: components["schemas"]["WorkerTarget"];
        } | {
            workflow: components["schemas"]["WorkflowTarget"];
        } | {
            process: components["schemas"]["ProcessTarget"];
        };
        /** @description The job of a task: a job without time, keys and parents. All fields are optional. */
        TaskJob: {
            callback_url?: components["schemas"]["Url"] | null;
            concurrency_key?: components["schemas"]["Name"] | null;
            created_by?: components["schemas"]["Name"] | null;
            delivery?: components["schemas"]["Delivery"] | null;
            /** @description Any facts about the job, as a JSON object. The server only stores them. */
            metadata?: Record<string, unknown> | null;
            /**
             * @description The data for the target: any JSON. Anywhere in it, `{"$from": "path", "default": …}` is replaced by the data at
             *     the path, and `{"$literal": …}` by its content as it is.
             */
            payload?: unknown;
            priority?: components["schemas"]["Priority"] | null;
            queue?: components["schemas"]["Name"] | null;
            requires?: components["schemas"]["Labels"] | null;
            retry?: components["schemas"]["Retry"] | null;
            /** @description Labels for finding the job. */
            tags?: components["schemas"]["Name"][] | null;
            target?: components["schemas"]["Target"] | null;
            timeout?: components["schemas"]["Span"] | null;
            type?: components["schemas"]["Name"] | null;
        };
        /** @description The name of a task: letters, digits, `_` and `-`, beginning with a letter. */
        TaskName: string;
        /**
         * Format: date-time
         * @description RFC 3339 with any offset; answered in UTC with milliseconds
         */
        Time: string;
        /**
         * Format: time-zone
         * @description The IANA name of a time zone.
         */
        TimeZone: string;
        /**
         * @description When a task may start, depending on how the tasks it depends on ended.
         * @enum {string}
         */
        TriggerRule: "all_succeeded" | "all_done" | "any_failed";
        /** @description A request to fire a schedule now. */
        TriggerSchedule: {
            idempotency_key?: components["schemas"]["Name"] | null;
            /** @description A payload to use instead of the schedule's. `null` is a value here. */
            payload?: unknown;
        };
        /** @description An absolute `http` or `https` URL without user info. */
        Url: string;
        /**
         * @description A day of the week.
         * @enum {string}
         */
        Weekday: "sunday" | "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday";
        /** @description Why a job is not running, or the fact that it is, or how it ended. */
        Why: {
            /**
             * @description A stable code for the reason.
             * @example not_yet_due
             */
            code: string;
            expected_start?: components["schemas"]["Time"] | null;
            /**
             * Format: uuid
             * @description The job.
             */
            job_id: string;
            /** @description The reason, as a sentence. */
            sentence: string;
            since?: components["schemas"]["Time"] | null;
            /** @description Its state. */
            status: components["schemas"]["Status"];
            /** @description What it waits for, if it waits. */
            waits_for?: string | null;
        };
        /** @description A word of a command or the value of a variable: any text without NUL. */
        Word: string;
        /** @description A worker, as the list of workers shows it. */
        Worker: {
            /**
             * Format: int32
             * @description How many jobs it runs at once.
             */
            capacity: number;
            /** @description The built-in executors that it has. */
            executors?: components["schemas"]["ExecutorKind"][];
            /** @description The machine it is on. */
            host?: string | null;
            /** @description Its session. */
            id: string;
            /** @description What it offers to jobs with `requires`. */
            labels: components["schemas"]["Labels"];
            last_poll?: components["schemas"]["Time"] | null;
            /** @description When it was last heard of. */
            last_seen: components["schemas"]["Time"];
            /** @description How long its lease is. */
            lease: components["schemas"]["Span"];
            /** @description When its jobs go to others unless it is heard of. */
            lease_ends_at: components["schemas"]["Time"];
            /** @description The library it is written with. */
            library?: string | null;
            /** @description Its name. */
            name: string;
            /**
             * Format: int32
             * @description Its process id.
             */
            pid?: number | null;
            /** @description The queues that it serves. */
            queues: string[];
            /** @description When it registered. */
            registered_at: components["schemas"]["Time"];
            /**
             * Format: int64
             * @description How many it has now.
             */
            running: number;
            /** @description What it is doing. */
            state: components["schemas"]["WorkerState"];
            /**
             * Format: int64
             * @description How many of its slots are taken by handlers that do not end.
             */
            stuck: number;
            /** @description The types that it has a handler for. */
            types: string[];
        };
        /** @description One worker with what it runs. */
        WorkerDetails: components["schemas"]["Worker"] & {
            /** @description What it runs: the first 1,000. */
            attempts: components["schemas"]["HeldAttempt"][];
        };
        /** @description A worker is alive. */
        WorkerHeartbeat: {
            /** @description News about attempts. May be empty: a heartbeat renews all that the worker has. */
            attempts?: components["schemas"]["AttemptProgress"][] | null;
            /**
             * Format: int64
             * @description How many attempts it has whose report was not accepted yet.
             */
            held?: number | null;
            state?: components["schemas"]["WorkerState"] | null;
            /**
             * Format: int64
             * @description How many of its slots are taken by handlers that do not end.
             */
            stuck?: number | null;
            /** @description The tokens of all of them: after `resync`, or to be sure. */
            tokens?: string[] | null;
        };
        /** @description The answer to a heartbeat. */
        WorkerHeartbeatAnswer: {
            /** @description Tokens of attempts that somebody wants stopped. */
            cancel: string[];
            /** @description The worker is to finish what it has and take nothing new. */
            drain: boolean;
            /** @description How long its jobs stay its own from now on. */
            lease: components["schemas"]["Span"];
            /** @description Tokens of attempts that are not the worker's own any more. */
            lost: string[];
            /** @description The server counts other attempts than the worker: send `tokens` with the next heartbeat. */
            resync: boolean;
        };
        /** @description The bounds of a worker's requests. */
        WorkerLimits: {
            /**
             * Format: int64
             * @description Bytes of the log of an attempt.
             */
            log_bytes: number;
            /**
             * Format: int64
             * @description Bytes of a line of a log.
             */
            log_line_bytes: number;
            /**
             * Format: int64
             * @description Jobs in the answer to a poll.
             */
            poll_jobs: number;
            /**
             * Format: int64
             * @description Bytes of a request.
             */
            report_bytes: number;
            /**
             * Format: int64
             * @description Reports in a request.
             */
            reports: number;
            /**
             * Format: int64
             * @description Bytes of a result.
             */
            result_bytes: number;
        };
        /**
         * @description What a worker is doing.
         * @enum {string}
         */
        WorkerState: "active" | "draining";
        /** @description Any worker that handles the job's type. */
        WorkerTarget: Record<string, unknown>;
        /** @description A version of a workflow. */
        Workflow: {
            /** @description When this version was stored. */
            created_at: components["schemas"]["Time"];
            /** @description The definition. Sent again as it is, it changes nothing. */
            definition: components["schemas"]["SubmitWorkflow"];
            /** @description What the workflow is for. */
            description?: string | null;
            /** @description The name, which is unique. */
            name: string;
            /** @description How many tasks it has, including those inside fan-outs. */
            tasks_total: number;
            /** @description The tenant that owns it. */
            tenant: string;
            /**
             * Format: int32
             * @description The version, beginning with 1.
             */
            version: number;
        };
        /** @description The name of a workflow, without control characters. */
        WorkflowName: string;
        /** @description A run of a workflow. */
        WorkflowRun: {
            /** @description Whether somebody asked the run to stop. */
            cancel_requested: boolean;
            /** @description When it was started. */
            created_at: components["schemas"]["Time"];
            ended_at?: components["schemas"]["Time"] | null;
            /**
             * Format: uuid
             * @description UUIDv7.
             */
            id: string;
            /** @description The input of the run. */
            input: unknown;
            /**
             * Format: uuid
             * @description The job that started the run and waits for it, if there is one.
             */
            job_id?: string | null;
            paused_at?: components["schemas"]["Time"] | null;
            /**
             * Format: int32
             * @description How many of its tasks have waited too long.
             */
            stalled: number;
            /** @description Its state. */
            status: components["schemas"]["RunStatus"];
            /** @description Its tasks in the order of the definition: `before` first, `after` last. Not part of lists. */
            tasks?: components["schemas"]["RunTask"][] | null;
            /**
             * Format: int32
             * @description How many of its tasks have not ended.
             */
            tasks_open: number;
            /**
             * Format: int32
             * @description How many tasks it has so far, including the items of fan-outs.
             */
            tasks_total: number;
            /** @description The tenant that owns it. */
            tenant: string;
            /**
             * Format: int32
             * @description The version of its workflow.
             */
            version: number;
            /** @description The name of its workflow. */
            workflow: string;
        };
        /** @description When a workflow runs by itself. Either `cron` or `every` is required. */
        WorkflowSchedule: {
            anchor?: components["schemas"]["Time"] | null;
            cron?: components["schemas"]["Cron"] | null;
            day_logic?: components["schemas"]["DayLogic"] | null;
            dst_fold?: components["schemas"]["DstFold"] | null;
            dst_gap?: components["schemas"]["DstGap"] | null;
            end_at?: components["schemas"]["Time"] | null;
            every?: components["schemas"]["Span"] | null;
            /** @description Days on which it does not fire: `2026-12-25`, `2026-12-24/2026-12-31` or `calendar:holidays`. */
            exclude?: components["schemas"]["ExcludedDays"][] | null;
            /** @description The input of each run: any JSON. */
            input?: unknown;
            jitter?: components["schemas"]["Span"] | null;
            missed?: components["schemas"]["Missed"] | null;
            on_excluded?: components["schemas"]["OnExcluded"] | null;
            overlap?: components["schemas"]["Overlap"] | null;
            /** @description Whether the schedule is paused. Default: unchanged, and not paused at first. */
            paused?: boolean | null;
            priority?: components["schemas"]["Priority"] | null;
            queue?: components["schemas"]["Name"] | null;
            start_at?: components["schemas"]["Time"] | null;
            timeout?: components["schemas"]["Span"] | null;
            timezone?: components["schemas"]["TimeZone"] | null;
        };
        /** @description A version of a workflow, without its tasks. */
        WorkflowSummary: {
            /** @description When this version was stored. */
            created_at: components["schemas"]["Time"];
            /** @description What the workflow is for. */
            description?: string | null;
            /** @description The name, which is unique. */
            name: string;
            schedule?: components["schemas"]["WorkflowSchedule"] | null;
            /** @description How many tasks it has, including those inside fan-outs. */
            tasks_total: number;
            /** @description The tenant that owns it. */
            tenant: string;
            /**
             * Format: int32
             * @description The version, beginning with 1.
             */
            version: number;
        };
        /** @description A workflow. The job runs the version that is the latest when it starts. */
        WorkflowTarget: {
            /** @description Its name. */
            name: components["schemas"]["WorkflowName"];
        };
        /** @description A task. `name` and either `job` or, with `for_each`, `tasks` are required. */
        WorkflowTask: {
            /**
             * Format: int32
             * @description With `for_each`: how many items may run at once. Default: all.
             */
            concurrency?: number | null;
            /** @description The names of the tasks it depends on. */
            depends_on?: components["schemas"]["TaskName"][] | null;
            for_each?: components["schemas"]["Path"] | null;
            job?: components["schemas"]["TaskJob"] | null;
            /**
             * Format: int32
             * @description With `for_each`: the task fails if the array has more elements than this. Default 10,000.
             */
            max_items?: number | null;
            /** @description The name: letters, digits, `_` and `-`, beginning with a letter. Unique among the tasks that it could depend on. */
            name: components["schemas"]["TaskName"];
            /** @description With `for_each`, instead of `job`: tasks that run for each element and can depend on each other. */
            tasks?: components["schemas"]["WorkflowTask"][] | null;
            trigger_rule?: components["schemas"]["TriggerRule"] | null;
            when?: components["schemas"]["Condition"] | null;
        };
        /** @description A clock change of a time zone. */
        ZoneChange: {
            /** @description The first moment of the new offset, written with that offset. */
            at: components["schemas"]["LocalTime"];
            /** @description What the change does to the firings, as a sentence. */
            effect: string;
            /** @description Whether the clock goes forward (`gap`) or back (`fold`). */
            kind: components["schemas"]["ClockChange"];
            /**
             * @description The offset after the change.
             * @example -04:00
             */
            offset_after: string;
            /**
             * @description The offset before the change.
             * @example -05:00
             */
            offset_before: string;
        };
    };
    responses: {
        /** @description Malformed: the JSON, a field, a parameter or an id is not what it should be */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The state does not allow this, or the name or key is taken */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The `Host` is not this server's, or a web page of another site sent the request */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The server has a fault */
        Internal: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Well-formed but impossible; `errors` has every bad field */
        Invalid: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The path does not support this method */
        MethodNotAllowed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description It does not exist */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The job or run did not end within `wait`, or the body did not arrive in time */
        Timeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body or the payload is too large */
        TooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The store is not reachable, or the server is overloaded or shutting down */
        Unavailable: {
            headers: {
                /** @description Seconds to wait before the next try */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The `Content-Type` is not what the call expects */
        UnsupportedMediaType: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    halt: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description No job starts until resumed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SystemStatus"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description Jobs start again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SystemStatus"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of the node */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SystemStatus"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    complete_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CompleteAttempt"];
            };
        };
        responses: {
            /** @description The report is recorded */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    fail_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FailAttempt"];
            };
        };
        responses: {
            /** @description The report is recorded */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    heartbeat_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HeartbeatAttempt"];
            };
        };
        responses: {
            /** @description The attempt is still current */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HeartbeatAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    append_attempt_logs: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReportedLines"];
            };
        };
        responses: {
            /** @description The lines are stored */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    ask_once: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AskOnce"];
            };
        };
        responses: {
            /** @description How the effect stands */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OnceAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    abandon_once: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OnceAbandon"];
            };
        };
        responses: {
            /** @description It is recorded */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    done_once: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OnceDone"];
            };
        };
        responses: {
            /** @description It is recorded */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_calendars: {
        parameters: {
            query?: {
                /** @description Items of a page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The calendars */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_CalendarSummary"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_calendar: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The calendar */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Calendar"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    put_calendar: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutCalendar"];
            };
        };
        responses: {
            /** @description The calendar is stored */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Calendar"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    delete_calendar: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The calendar is deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    import_calendar: {
        parameters: {
            query?: {
                /** @description Remove the days that are not in the file. Default `false`. */
                replace?: boolean;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "text/calendar": string;
            };
        };
        responses: {
            /** @description The days are imported */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CalendarImport"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_cron: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewCron"];
            };
        };
        responses: {
            /** @description What the expression means and when it fires */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CronPreview"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_dead_letters: {
        parameters: {
            query?: {
                /** @description Only jobs of this type. */
                type?: string;
                /** @description Only jobs of this queue. */
                queue?: string;
                /** @description How many items per page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The dead letters */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_DeadLetter"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    redrive_dead_letters: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RedriveFilter"];
            };
        };
        responses: {
            /** @description The redrive has ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RedriveProgress"];
                };
            };
            /** @description The redrive is running */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RedriveProgress"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_redrive: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The progress */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RedriveProgress"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_dead_letter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The dead letter */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    discard_dead_letter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The dead letter is discarded */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    redrive_dead_letter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Redrive"];
            };
        };
        responses: {
            /** @description The job will run again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_jobs: {
        parameters: {
            query?: {
                /** @description Only jobs in this state. Several states may be given, separated by commas. */
                status?: components["schemas"]["Status"][];
                /** @description Only jobs of this type. */
                type?: string;
                /** @description Only jobs of this queue. */
                queue?: string;
                /** @description Only jobs with this tag. If the parameter occurs several times, jobs must have all the tags. */
                tag?: string[][];
                /** @description Only jobs of this priority. */
                priority?: components["schemas"]["Priority"];
                /** @description Only jobs of this schedule, given by id or name. */
                schedule_id?: string;
                /** @description Only tasks of this workflow run. */
                workflow_run_id?: string;
                /** @description Only jobs created at this time or later. */
                from?: string;
                /** @description Only jobs created before this time. */
                to?: string;
                /** @description How many items per page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /**
                 * @description Fields to add, which may be large: `payload`, `result`, or both, separated by a comma.
                 * @example payload,result
                 */
                include?: ("payload" | "result")[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The jobs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    submit_job: {
        parameters: {
            query?: never;
            header?: {
                /** @description Same as the field `idempotency_key` */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SubmitJob"];
            };
        };
        responses: {
            /** @description The job was stored before, with the same idempotency key */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description The job is stored */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    submit_jobs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchSubmit"];
            };
        };
        responses: {
            /** @description One result per job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_job: {
        parameters: {
            query?: {
                /**
                 * @description Wait until the job has ended, for up to this long (5 minutes at most). After that the answer is 408.
                 * @example 30s
                 */
                wait?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    delete_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changed job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    patch_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PatchJob"];
            };
        };
        responses: {
            /** @description The changed job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_attempts: {
        parameters: {
            query?: {
                /** @description Items of a page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The attempts */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_Attempt"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_attempt_logs: {
        parameters: {
            query?: {
                /** @description Items of a page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
                n: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The log lines */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_LogLine"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_job_callbacks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The callbacks */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_Callback"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resend_job_callback: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The new callback */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Callback"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancel_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_job_logs: {
        parameters: {
            query?: {
                /** @description Only lines of this attempt. */
                attempt?: number;
                /**
                 * @description `true`: answer with a line of JSON (`application/x-ndjson`) for each line of the log, and go on with new ones
                 *     until the job has ended, or the attempt if there is one. Each line has a `cursor` to go on after it.
                 */
                follow?: boolean;
                /** @description Items of a page, 1 to 1000. Default 50. Not with `follow`. */
                limit?: number;
                /** @description `next_cursor` of the page before, or `cursor` of a line that was followed. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The log lines */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_LogLine"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    pause_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    retry_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    run_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    explain_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The reason */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Why"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_queues: {
        parameters: {
            query?: {
                /** @description Items of a page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queues */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_Queue"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_queue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queue */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    pause_queue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The queue is paused */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume_queue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The queue is resumed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_schedules: {
        parameters: {
            query?: {
                /** @description Only paused schedules (`true`), or only those that are not (`false`). */
                paused?: boolean;
                /** @description How many items per page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schedules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_Schedule"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SubmitSchedule"];
            };
        };
        responses: {
            /** @description The schedule is stored */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_schedule: {
        parameters: {
            query?: {
                /** @description How many, 1 to 1000. Default 10. */
                count?: number;
                /** @description Only firings after this time. Default: now. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SubmitSchedule"];
            };
        };
        responses: {
            /** @description The schedule as it would be */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SchedulePreview"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schedule */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    put_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutSchedule"];
            };
        };
        responses: {
            /** @description The schedule existed, and is as requested */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            /** @description The schedule is stored */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    delete_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schedule is deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    patch_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PatchSchedule"];
            };
        };
        responses: {
            /** @description The changed schedule */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_backfill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The backfill */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Backfill"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    backfill_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BackfillSchedule"];
            };
        };
        responses: {
            /** @description With `preview`: what the backfill would do */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillPreview"];
                };
            };
            /** @description The backfill is running */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Backfill"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancel_backfill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The cancelled or ended backfill */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Backfill"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_fires: {
        parameters: {
            query?: {
                /** @description Only firings with this outcome. */
                outcome?: components["schemas"]["FireOutcome"];
                /** @description How many items per page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The firings */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_Fire"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    next_fires: {
        parameters: {
            query?: {
                /** @description How many, 1 to 1000. Default 10. */
                count?: number;
                /** @description Only firings after this time. Default: now. */
                after?: string;
            };
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The firings */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_NextFire"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    pause_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PauseSchedule"];
            };
        };
        responses: {
            /** @description The schedule is paused */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The schedule is resumed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    trigger_schedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description Same as the field `idempotency_key` */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The id or name of the schedule */
                schedule: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["TriggerSchedule"];
            };
        };
        responses: {
            /** @description The job was stored before, with the same idempotency key */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description The job is stored */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_server: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerInfo"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_workers: {
        parameters: {
            query?: {
                /** @description Items of a page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workers */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_Worker"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    register_worker: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterWorker"];
            };
        };
        responses: {
            /** @description The session is open */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegisteredWorker"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_worker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The worker */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerDetails"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    leave_worker: {
        parameters: {
            query?: {
                /** @description Why it leaves. */
                reason?: "drained" | "crashed";
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session has ended */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    drain_worker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The worker is asked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerDetails"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    heartbeat_worker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkerHeartbeat"];
            };
        };
        responses: {
            /** @description The lease is renewed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerHeartbeatAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    append_worker_logs: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AppendLogs"];
            };
        };
        responses: {
            /** @description One answer per log, in order */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportResults"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    poll_worker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PollWorker"];
            };
        };
        responses: {
            /** @description The jobs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolledJobs"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    report_attempts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReportAttempts"];
            };
        };
        responses: {
            /** @description One answer per report, in order */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportResults"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume_worker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The worker takes jobs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerDetails"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_workflow_runs: {
        parameters: {
            query?: {
                /** @description Only runs of this workflow. */
                workflow?: string;
                /** @description Only runs in this state. */
                status?: components["schemas"]["RunStatus"];
                /** @description How many items per page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_workflow_run: {
        parameters: {
            query?: {
                /**
                 * @description Wait until the run has ended, for up to this long (5 minutes at most). After that the answer is 408.
                 * @example 30s
                 */
                wait?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancel_workflow_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_workflow_run_items: {
        parameters: {
            query: {
                /**
                 * @description The fan-out: its name, or its path, such as `load[3].check`. For one of its items that has tasks (`load[3]`),
                 *     the answer lists those tasks.
                 */
                task: string;
                /** @description Only items in this state. */
                status?: components["schemas"]["Status"];
                /** @description How many items per page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The items */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_RunTask"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    pause_workflow_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume_workflow_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    retry_workflow_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    complete_workflow_task: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                /** @description The name or path of the task, such as `load[3].check` */
                task: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CompleteTask"];
            };
        };
        responses: {
            /** @description The changed run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    retry_workflow_task: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                /** @description The name or path of the task, such as `load[3].check` */
                task: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    skip_workflow_task: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                /** @description The name or path of the task, such as `load[3].check` */
                task: string;
            };
            cookie?: never;
        };
        /** @description Nothing, or an empty object; with `Content-Type: application/json` either way */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Empty"];
            };
        };
        responses: {
            /** @description The changed run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_workflows: {
        parameters: {
            query?: {
                /** @description Items of a page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workflows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_WorkflowSummary"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    submit_workflow: {
        parameters: {
            query?: {
                /** @description Only say what would be stored, and as which version. */
                dry_run?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SubmitWorkflow"];
            };
        };
        responses: {
            /** @description The latest version is the same, or it was a dry run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workflow"];
                };
            };
            /** @description The workflow is stored as a new version */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workflow"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_workflow: {
        parameters: {
            query?: {
                /** @description The version. Default: the latest. */
                version?: number;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workflow */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workflow"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    delete_workflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workflow is deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    draw_workflow: {
        parameters: {
            query?: {
                /** @description The language. Default `mermaid`. */
                format?: "mermaid" | "dot";
                /** @description The version. Default: the latest. */
                version?: number;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The diagram */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    start_workflow_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description Same as the field `idempotency_key` */
                "Idempotency-Key"?: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StartRun"];
            };
        };
        responses: {
            /** @description The run was started before, with the same idempotency key */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            /** @description The run has started */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowRun"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_workflow_versions: {
        parameters: {
            query?: {
                /** @description Items of a page, 1 to 1000. Default 50. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["List_WorkflowSummary"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process is alive */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            500: components["responses"]["Internal"];
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The metrics */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The OpenAPI document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server is ready */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            403: components["responses"]["Forbidden"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
}
