import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Date;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.Consumer;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

/**
 * Quartz with its JDBC store: a job is a trigger with data of a job that stays. Triggers are acquired as many at a
 * time as there are threads, and not clustered, which spares it the locks in the database. A trigger that has fired is
 * deleted.
 */
final class QuartzPeer implements Measure.Peer {
    private static final int THREADS = 25;
    private static final String TABLES = "/org/quartz/impl/jdbcjobstore/tables_postgres.sql";
    private static final JobDetail NOOP = JobBuilder.newJob(Noop.class).withIdentity("noop").storeDurably().build();
    private static volatile Consumer<String> onStart;

    /** Has to be public: Quartz makes one for every execution. */
    public static final class Noop implements Job {
        @Override
        public void execute(JobExecutionContext context) {
            onStart.accept(context.getTrigger().getJobDataMap().getString("payload"));
        }
    }

    private Scheduler scheduler;
    private Connection observer;

    /** It can wait by itself, and would write to a locked table before it is up. */
    @Override
    public String table() {
        return null;
    }

    @Override
    public void open() throws Exception {
        observer = DriverManager.getConnection(Measure.jdbcUrl());
        try (InputStream file = Scheduler.class.getResourceAsStream(TABLES);
                Statement statement = observer.createStatement()) {
            statement.execute(new String(file.readAllBytes(), StandardCharsets.UTF_8));
        }
        scheduler = scheduler();
        scheduler.addJob(NOOP, true);
    }

    private static Scheduler scheduler() throws SchedulerException {
        Properties settings = new Properties();
        settings.putAll(Map.ofEntries(
                Map.entry("org.quartz.scheduler.skipUpdateCheck", "true"),
                Map.entry("org.quartz.threadPool.threadCount", "" + THREADS),
                Map.entry("org.quartz.scheduler.batchTriggerAcquisitionMaxCount", "" + THREADS),
                Map.entry("org.quartz.scheduler.idleWaitTime", "1000"), // its shortest
                Map.entry("org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX"),
                Map.entry("org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.PostgreSQLDelegate"),
                // Needed where many are acquired at once.
                Map.entry("org.quartz.jobStore.acquireTriggersWithinLock", "true"),
                Map.entry("org.quartz.jobStore.misfireThreshold", "3600000"), // a drain is no misfire
                Map.entry("org.quartz.jobStore.useProperties", "true"),
                Map.entry("org.quartz.jobStore.dataSource", "bench"),
                Map.entry("org.quartz.dataSource.bench.provider", "hikaricp"),
                Map.entry("org.quartz.dataSource.bench.driver", "org.postgresql.Driver"),
                Map.entry("org.quartz.dataSource.bench.URL", Measure.jdbcUrl()),
                Map.entry("org.quartz.dataSource.bench.maxConnections", "" + (THREADS + 5))));
        return new StdSchedulerFactory(settings).getScheduler();
    }

    @Override
    public void submit(List<Measure.Job> jobs) throws SchedulerException {
        Set<Trigger> triggers = new HashSet<>();
        for (Measure.Job job : jobs) {
            Date due = job.dueAt() == null ? new Date() : Date.from(job.dueAt());
            TriggerBuilder<Trigger> trigger = TriggerBuilder.newTrigger().withIdentity(job.id()).forJob(NOOP);
            triggers.add(trigger.usingJobData("payload", job.payload()).startAt(due).build());
        }
        scheduler.scheduleJobs(Map.of(NOOP, triggers), true);
    }

    @Override
    public void work(Consumer<String> onStart) throws SchedulerException {
        QuartzPeer.onStart = onStart;
        scheduler.start();
    }

    @Override
    public void stop() throws SchedulerException {
        scheduler.standby();
    }

    @Override
    public long unfinished() throws SQLException {
        String left = "SELECT (SELECT count(*) FROM qrtz_triggers) + (SELECT count(*) FROM qrtz_fired_triggers)";
        try (Statement statement = observer.createStatement(); ResultSet counted = statement.executeQuery(left)) {
            counted.next();
            return counted.getLong(1);
        }
    }

    public static void main(String[] words) throws Exception {
        Measure.main(new QuartzPeer(), words);
    }
}
