import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.stream.Collectors;

/**
 * What every peer in Java is asked, so that all are asked alike:
 *
 * <pre>peer submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS</pre>
 *
 * One JSON object on standard output says what was seen; percentiles are for whoever reads it. Before a drain a tenth
 * of the jobs is drained with other workers, so that the code which is measured has been compiled.
 */
final class Measure {
    /** A job to be stored. Without a time it is due now. */
    record Job(String id, String payload, Instant dueAt) {}

    /** What takes part. Its workers hand the payload of every job to `onStart` and do nothing else. */
    interface Peer {
        /**
         * Where it keeps its jobs: a lock on it holds the workers back until all are up. Null for a peer that stays up
         * when it is stopped and goes on at once.
         */
        String table();

        void open() throws Exception;

        void submit(List<Job> jobs) throws Exception;

        void work(Consumer<String> onStart) throws Exception;

        void stop() throws Exception;

        /** What is not durably completed. */
        long unfinished() throws Exception;
    }

    /** The server this run may use, empty. */
    static final String SERVER = System.getenv("BENCH_SERVER");

    private static final int BATCH_LEN = 500;
    private static final int SUBMITS_IN_FLIGHT = 4; // as many as ours gets
    private static final int WARM_UP_PART = 10;
    private static final Duration HEAD_START = Duration.ofSeconds(2);
    private static final int PAUSE_MS = 20;
    private static final int POLL_MS = 2;
    private static final int FIRST_NUMBER = 10_000_000; // as many digits for every job

    private final Peer peer;

    private Measure(Peer peer) {
        this.peer = peer;
    }

    /** Measures what the command line asks for, prints it, and ends the process with whatever the peer left running. */
    static void main(Peer peer, String[] words) throws Exception {
        int[] numbers = Arrays.stream(words).skip(1).mapToInt(Integer::parseInt).toArray();
        peer.open();
        Measure measure = new Measure(peer);
        String seen = switch (words[0]) {
            case "submit" -> measure.submit(numbers[0]);
            case "drain" -> measure.drain(numbers[0]);
            case "lag" -> measure.lag(numbers[0], numbers[1]);
            case "idle" -> measure.idle(numbers[0]);
            default -> throw new IllegalArgumentException("nobody knows " + words[0]);
        };
        System.out.println(seen);
        System.exit(0);
    }

    /** The server's address as its driver wants it. */
    static String jdbcUrl() {
        URI server = URI.create(SERVER);
        return "jdbc:postgresql://" + server.getAuthority().replaceFirst(".*@", "") + server.getPath() + "?user="
                + server.getUserInfo() + "&reWriteBatchedInserts=true";
    }

    private String submit(int jobs) throws Exception {
        long begun = System.nanoTime();
        submitAll(jobs, number -> null, SUBMITS_IN_FLIGHT);
        return rate("submit_per_s", jobs, begun);
    }

    private String drain(int jobs) throws Exception {
        warmUp(Math.max(1, jobs / WARM_UP_PART));
        submitAll(jobs, number -> null, SUBMITS_IN_FLIGHT);
        vacuum();
        Starts starts = new Starts(jobs);
        long begun = startHeld(starts);
        starts.all.await();
        untilFinished();
        return rate("drain_per_s", jobs, begun);
    }

    /** Starts the workers, lets them begin when all are up, and answers when that was: see `hold`. */
    private long startHeld(Starts starts) throws Exception {
        if (peer.table() == null) {
            long begun = System.nanoTime();
            peer.work(starts::note);
            return begun;
        }
        Process hold = new ProcessBuilder(System.getenv("BENCH_HOLD"), peer.table())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader said = hold.inputReader();
        expect(said, "held");
        peer.work(starts::note);
        expect(said, "asked");
        long begun = System.nanoTime();
        hold.outputWriter().append('\n').flush();
        return begun;
    }

    private void warmUp(int jobs) throws Exception {
        submitAll(jobs, number -> null, SUBMITS_IN_FLIGHT);
        Starts starts = new Starts(jobs);
        peer.work(starts::note);
        starts.all.await();
        untilFinished();
        peer.stop();
    }

    private String lag(int rate, int seconds) throws Exception {
        int jobs = rate * seconds;
        Starts starts = new Starts(jobs);
        peer.work(starts::note);
        Instant first = Instant.now().plus(HEAD_START).truncatedTo(ChronoUnit.MILLIS);
        IntFunction<Instant> dueAt = number -> first.plusMillis(number * 1_000L / rate);
        submitAll(jobs, dueAt, SUBMITS_IN_FLIGHT);
        starts.all.await();
        List<Double> samples = new ArrayList<>();
        for (int number = 0; number < jobs; number++) {
            samples.add(starts.micros(number) / 1e3 - dueAt.apply(number).toEpochMilli());
        }
        return samples(samples);
    }

    private String idle(int jobs) throws Exception {
        Starts starts = new Starts(jobs);
        peer.work(starts::note);
        List<Double> samples = new ArrayList<>();
        for (int number = 0; number < jobs; number++) {
            Thread.sleep(PAUSE_MS);
            long submitted = nowMicros();
            peer.submit(List.of(job(number, null)));
            while (starts.micros(number) == 0) Thread.sleep(POLL_MS);
            samples.add((starts.micros(number) - submitted) / 1e3);
        }
        return samples(samples);
    }

    private void submitAll(int count, IntFunction<Instant> dueAt, int inFlight) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(inFlight);
        List<Future<?>> batches = new ArrayList<>();
        for (int first = 0; first < count; first += BATCH_LEN) {
            List<Job> jobs = new ArrayList<>();
            for (int number = first; number < Math.min(first + BATCH_LEN, count); number++) {
                jobs.add(job(number, dueAt.apply(number)));
            }
            batches.add(pool.submit(() -> {
                peer.submit(jobs);
                return null;
            }));
        }
        for (Future<?> batch : batches) batch.get();
        pool.shutdown();
    }

    /** A hundred bytes of JSON, and in them which job it is. */
    private static Job job(int number, Instant dueAt) {
        int n = FIRST_NUMBER + number;
        String payload = "{\"to\":\"somebody@example.org\",\"template\":\"welcome\",\"language\":\"en\","
                + "\"number\":1234567890,\"n\":" + n + "}";
        return new Job("job-" + n, payload, dueAt);
    }

    private void untilFinished() throws Exception {
        while (peer.unfinished() > 0) Thread.sleep(POLL_MS);
    }

    /** What autovacuum has long done to a table in steady use and not yet to one that was filled a second ago. */
    private static void vacuum() throws Exception {
        Process psql = new ProcessBuilder("psql", "--quiet", "--no-psqlrc", SERVER, "--command", "VACUUM ANALYZE").start();
        int code = psql.waitFor();
        if (code != 0) throw new IOException("the tables could not be analysed");
    }

    private static void expect(BufferedReader lock, String word) throws IOException {
        String said = lock.readLine();
        if (!word.equals(said)) throw new IOException("the lock said " + said + " and not " + word);
    }

    private static long nowMicros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    private static String rate(String name, int jobs, long begun) {
        return "{\"jobs\":%d,\"%s\":%f}".formatted(jobs, name, jobs * 1e9 / (System.nanoTime() - begun));
    }

    private static String samples(List<Double> samples) {
        return samples.stream().map(String::valueOf).collect(Collectors.joining(",", "{\"samples_ms\":[", "]}"));
    }

    /** When each job started, in microseconds since 1970; the first time, for a peer may run one again. */
    private static final class Starts {
        private final AtomicLongArray at;
        private final CountDownLatch all;

        Starts(int jobs) {
            at = new AtomicLongArray(jobs);
            all = new CountDownLatch(jobs);
        }

        void note(String payload) {
            int n = Integer.parseInt(payload, payload.lastIndexOf(':') + 1, payload.length() - 1, 10);
            int number = n - FIRST_NUMBER;
            if (at.compareAndSet(number, 0, nowMicros())) all.countDown();
        }

        long micros(int number) {
            return at.get(number);
        }
    }
}
