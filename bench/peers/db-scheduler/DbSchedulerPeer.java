import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.serializer.Serializer;
import com.github.kagkarlsson.scheduler.task.SchedulableInstance;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.zaxxer.hikari.HikariDataSource;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * db-scheduler: jobs are fetched and locked by one statement, in the proportions its documentation gives for high
 * throughput (1.0 and 4.0 times the threads); the poll that finds delayed jobs comes every ten milliseconds (the
 * default is every ten seconds), and jobs that are due at once wake the scheduler. A finished job is deleted.
 */
final class DbSchedulerPeer implements Measure.Peer {
    private static final int THREADS = 50;
    private static final int CONNECTIONS = THREADS + 10;
    // The table and the indexes that its documentation asks for.
    private static final String TABLE = """
            CREATE TABLE scheduled_tasks (
                task_name text NOT NULL, task_instance text NOT NULL, task_data bytea, execution_time timestamptz NOT NULL,
                picked boolean NOT NULL, picked_by text, last_success timestamptz, last_failure timestamptz,
                consecutive_failures int, last_heartbeat timestamptz, version bigint NOT NULL, priority smallint,
                PRIMARY KEY (task_name, task_instance));
            CREATE INDEX execution_time_idx ON scheduled_tasks (execution_time);
            CREATE INDEX last_heartbeat_idx ON scheduled_tasks (last_heartbeat)""";

    private final HikariDataSource database = new HikariDataSource();
    private volatile Consumer<String> onStart;
    private Scheduler scheduler;
    private final OneTimeTask<String> noop =
            Tasks.oneTime("noop", String.class).execute((job, context) -> onStart.accept(job.getData()));

    @Override
    public String table() {
        return "scheduled_tasks";
    }

    @Override
    public void open() throws SQLException {
        database.setJdbcUrl(Measure.jdbcUrl());
        database.setMaximumPoolSize(CONNECTIONS);
        try (Connection connection = database.getConnection(); Statement statement = connection.createStatement()) {
            statement.execute(TABLE);
        }
        scheduler = scheduler();
    }

    private Scheduler scheduler() {
        return Scheduler.create(database, noop)
                .threads(THREADS)
                .pollUsingLockAndFetch(1.0, 4.0)
                .pollingInterval(Duration.ofMillis(10))
                .enableImmediateExecution()
                .serializer(new Text())
                .build();
    }

    @Override
    public void submit(List<Measure.Job> jobs) {
        List<SchedulableInstance<?>> instances = new ArrayList<>();
        for (Measure.Job job : jobs) {
            Instant due = job.dueAt() == null ? Instant.now() : job.dueAt();
            instances.add(SchedulableInstance.of(noop.instance(job.id(), job.payload()), due));
        }
        // Only what is scheduled alone wakes the scheduler.
        if (instances.size() == 1) scheduler.schedule(instances.get(0));
        else scheduler.scheduleBatch(instances);
    }

    @Override
    public void work(Consumer<String> onStart) {
        this.onStart = onStart;
        scheduler.start();
    }

    /** A scheduler that was stopped cannot be started again. */
    @Override
    public void stop() {
        scheduler.stop();
        scheduler = scheduler();
    }

    @Override
    public long unfinished() throws SQLException {
        try (Connection connection = database.getConnection();
                Statement statement = connection.createStatement();
                ResultSet counted = statement.executeQuery("SELECT count(*) FROM scheduled_tasks")) {
            counted.next();
            return counted.getLong(1);
        }
    }

    /** Payloads as they are, without Java's own form around them. */
    private static final class Text implements Serializer {
        @Override
        public byte[] serialize(Object data) {
            return data == null ? null : data.toString().getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public <T> T deserialize(Class<T> type, byte[] data) {
            return data == null ? null : type.cast(new String(data, StandardCharsets.UTF_8));
        }
    }

    public static void main(String[] words) throws Exception {
        Measure.main(new DbSchedulerPeer(), words);
    }
}
