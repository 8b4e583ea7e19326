package crosslanguage;

import com.sun.management.ThreadMXBean;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.Status;

import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Phaser;

/** The modes of a caller's program that are equal over all transports: checking, measuring, connecting. */
final class Modes
{
    /** The standard output. */
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    /** The greatest argument that a program's callback accepts. */
    private static final long CALLBACK_LIMIT = 12;
    /** Longer results are printed as their length and hash. */
    private static final int RESULT_LIMIT = 120;
    /** Calls in the first block of the warm-up. */
    private static final int FIRST_BLOCK = 100;
    /** Blocks in a row that are no faster before the warm-up ends. */
    private static final int STEADY_BLOCKS = 3;
    /** Shortest warm-up. */
    private static final long LEAST_WARMUP_NS = 500_000_000;
    /** A faster block takes less than this share of an earlier block's time for a call. */
    private static final double FASTER = 0.95;
    private static final Set<String> OPTIONS = Set.of(
        "--check", "--measure", "--connect-cycles", "--calls", "--warmup-ms", "--counted-ms", "--callers", "--samples");

    private Modes()
    {
    }

    /** Returns the options of these modes, and others. */
    static Set<String> options(final String... others)
    {
        final Set<String> options = new TreeSet<>(OPTIONS);
        options.addAll(List.of(others));
        return options;
    }

    /** Answers callbacks: with the square of a small integer. */
    static long square(final long argument) throws FailureException
    {
        if (argument < 0 || argument > CALLBACK_LIMIT)
        {
            throw new FailureException(Status.CALLBACK_FAILED, argument + " is not in 0 to " + CALLBACK_LIMIT);
        }
        return argument * argument;
    }

    static List<String> lines(final String path) throws IOException
    {
        return Files.readAllLines(Path.of(path));
    }

    /** Runs the mode that the options choose. Returns false if they choose none of this class. */
    static boolean run(final Options options, final Connection.Factory factory) throws Exception
    {
        if (options.has("--check"))
        {
            try (Connection connection = factory.connect())
            {
                check(connection, lines(options.get("--check", null)));
            }
        }
        else if (options.has("--measure"))
        {
            measure(options, factory);
        }
        else if (options.has("--connect-cycles"))
        {
            connectCycles(options, factory);
        }
        else
        {
            return false;
        }
        return true;
    }

    /** Calls {@code OPERATION ARGUMENT}, the argument in JSON, for each line. */
    private static void check(final Connection connection, final List<String> cases)
        throws CallException, MalformedException
    {
        final JsonBodies json = new JsonBodies();
        for (int i = 0; i < cases.size(); i++)
        {
            final String[] words = cases.get(i).split(" ", 2);
            final Operation operation = Operation.valueOf(words[0].toUpperCase(Locale.ROOT));
            final Object argument = json.read(Contract.argument(operation), words[1]);
            String result;
            try
            {
                final Kind kind = Contract.result(operation);
                result = shortened(CanonicalText.of(kind, connection.call(operation, argument)));
            }
            catch (final FailureException ex)
            {
                result = ex.status.name();
            }
            OUT.println((i + 1) + " " + words[0] + " " + result);
        }
    }

    private static String shortened(final String text)
    {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= RESULT_LIMIT)
        {
            return text;
        }
        // FNV-1a
        long hash = 0xcbf29ce484222325L;
        for (final byte b : bytes)
        {
            hash = (hash ^ (b & 0xFF)) * 0x100000001b3L;
        }
        return bytes.length + " bytes " + String.format("%016x", hash);
    }

    /** Times the calls of concurrent callers, and prints a line of JSON. */
    private static void measure(final Options options, final Connection.Factory factory) throws Exception
    {
        final int payload = options.integer("--measure", 0);
        final int calls = options.integer("--calls", 10_000);
        final int callers = options.integer("--callers", 1);
        final int countedMs = options.integer("--counted-ms", 0);
        // Of all callers and this thread. A caller that fails ends it.
        final Phaser phases = new Phaser(callers + 1);
        final ExecutorService threads = Executors.newCachedThreadPool();
        final List<Measured> measured = new ArrayList<>();
        final List<Future<Void>> results = new ArrayList<>();
        for (int i = 0; i < callers; i++)
        {
            final Measured caller = new Measured();
            measured.add(caller);
            results.add(threads.submit(() -> runCaller(factory, payload, calls, options, phases, caller)));
        }
        final long elapsed;
        final long countedElapsed;
        final long allocated;
        try
        {
            // All are ready, begin, and have finished.
            awaitAll(phases);
            // Before the callers begin: afterwards, this thread may have to wait for a core.
            final long start = System.nanoTime();
            awaitAll(phases);
            awaitAll(phases);
            elapsed = System.nanoTime() - start;
            if (countedMs > 0)
            {
                OUT.println("counting");
                OUT.flush();
            }
            final long allocatedBefore = allocatedBytes();
            final long countedStart = System.nanoTime();
            awaitAll(phases);
            awaitAll(phases);
            countedElapsed = System.nanoTime() - countedStart;
            allocated = allocatedBytes() - allocatedBefore;
            OUT.println(report(measured, elapsed, (long)calls * callers, countedElapsed, allocated));
            OUT.flush();
            // The callers close.
            awaitAll(phases);
        }
        catch (final BrokenBarrierException ex)
        {
            throw failure(results, ex);
        }
        for (final Future<Void> result : results)
        {
            result.get();
        }
        threads.shutdown();
        writeSamples(options, measured);
    }

    /** The stages of a concurrent caller. Read after a common barrier. */
    private static final class Measured
    {
        long warmupCalls;
        boolean isSteady;
        long[] times;
        long countedCalls;
    }

    private static String report(
        final List<Measured> measured, final long elapsed, final long calls, final long countedElapsed,
        final long allocated)
    {
        long warmupCalls = 0;
        long counted = 0;
        boolean isSteady = true;
        for (final Measured caller : measured)
        {
            warmupCalls += caller.warmupCalls;
            counted += caller.countedCalls;
            isSteady &= caller.isSteady;
        }
        final String allocatedPerCall =
            counted == 0 ? "null" : String.format(Locale.ROOT, "%.1f", (double)allocated / counted);
        return "{\"elapsed_ns\":" + elapsed + ",\"calls\":" + calls +
            ",\"warmup_calls\":" + warmupCalls + ",\"is_steady\":" + isSteady +
            ",\"counted_ns\":" + countedElapsed + ",\"counted_calls\":" + counted +
            ",\"allocations_per_call\":null,\"allocated_bytes_per_call\":" + allocatedPerCall + "}";
    }

    private static void awaitAll(final Phaser phases) throws BrokenBarrierException
    {
        if (phases.arriveAndAwaitAdvance() < 0)
        {
            throw new BrokenBarrierException();
        }
    }

    /** Returns the failure of the caller that has ended the phases. */
    private static Exception failure(final List<Future<Void>> results, final BrokenBarrierException broken)
        throws InterruptedException
    {
        for (final Future<Void> result : results)
        {
            try
            {
                result.get();
            }
            catch (final ExecutionException ex)
            {
                if (ex.getCause() instanceof Exception && !(ex.getCause() instanceof BrokenBarrierException))
                {
                    return (Exception)ex.getCause();
                }
            }
        }
        return broken;
    }

    /** A concurrent caller: connects, warms up, and after a common beginning each, times its calls and counts. */
    private static Void runCaller(
        final Connection.Factory factory, final int payload, final int calls, final Options options,
        final Phaser phases, final Measured measured)
        throws Exception
    {
        try (Connection connection = factory.connect())
        {
            final Operation operation = payload == 0 ? Operation.PING : Operation.REVERSE;
            final String text = payload == 0 ?
                null : "abcdefghijklmnopqrstuvwxyz".repeat(payload / 26 + 1).substring(0, payload);
            final Object expected = payload == 0 ? null : new StringBuilder(text).reverse().toString();
            if (!java.util.Objects.equals(connection.call(operation, text), expected))
            {
                throw new IllegalStateException(operation + ": wrong result");
            }
            warmUp(connection, operation, text, options.integer("--warmup-ms", 6_000) * 1_000_000L, measured);
            final long[] times = new long[calls];
            awaitAll(phases);
            awaitAll(phases);
            for (int i = 0; i < calls; i++)
            {
                final long start = System.nanoTime();
                connection.call(operation, text);
                times[i] = System.nanoTime() - start;
            }
            measured.times = times;
            awaitAll(phases);
            awaitAll(phases);
            final long deadline = System.nanoTime() + options.integer("--counted-ms", 0) * 1_000_000L;
            while (System.nanoTime() - deadline < 0)
            {
                connection.call(operation, text);
                measured.countedCalls++;
            }
            awaitAll(phases);
            awaitAll(phases);
            return null;
        }
        catch (final Throwable ex)
        {
            // Ends the waiting of the others, of those that come later too.
            phases.forceTermination();
            throw ex;
        }
    }

    /** Calls in blocks, each twice as long as the block before, until some in a row are no faster than the fastest. */
    private static void warmUp(
        final Connection connection, final Operation operation, final Object argument, final long longestNs,
        final Measured measured)
        throws Exception
    {
        final long begin = System.nanoTime();
        final long deadline = begin + longestNs;
        double fastest = Double.POSITIVE_INFINITY;
        int steadyBlocks = 0;
        for (int block = FIRST_BLOCK;
            steadyBlocks < STEADY_BLOCKS || System.nanoTime() - begin < LEAST_WARMUP_NS; block *= 2)
        {
            final long start = System.nanoTime();
            for (int i = 0; i < block; i++)
            {
                if (System.nanoTime() - deadline >= 0)
                {
                    return;
                }
                connection.call(operation, argument);
                measured.warmupCalls++;
            }
            final double time = (double)(System.nanoTime() - start) / block;
            steadyBlocks = time < FASTER * fastest ? 0 : steadyBlocks + 1;
            fastest = Math.min(fastest, time);
        }
        measured.isSteady = true;
    }

    /** Bytes that the living threads have allocated. */
    private static long allocatedBytes()
    {
        final ThreadMXBean threads = (ThreadMXBean)ManagementFactory.getThreadMXBean();
        long sum = 0;
        for (final long bytes : threads.getThreadAllocatedBytes(threads.getAllThreadIds()))
        {
            sum += Math.max(0, bytes);
        }
        return sum;
    }

    /** Connects, calls {@code PING} and closes, again and again. */
    private static void connectCycles(final Options options, final Connection.Factory factory) throws Exception
    {
        final long[] times = new long[options.integer("--connect-cycles", 0)];
        final long begin = System.nanoTime();
        for (int i = 0; i < times.length; i++)
        {
            final long start = System.nanoTime();
            try (Connection connection = factory.connect())
            {
                connection.call(Operation.PING, null);
            }
            times[i] = System.nanoTime() - start;
        }
        final long elapsed = System.nanoTime() - begin;
        final Measured measured = new Measured();
        measured.times = times;
        writeSamples(options, List.of(measured));
        OUT.println("{\"elapsed_ns\":" + elapsed + ",\"calls\":" + times.length + "}");
    }

    private static void writeSamples(final Options options, final List<Measured> measured) throws IOException
    {
        if (options.has("--samples"))
        {
            try (PrintWriter file = new PrintWriter(options.get("--samples", null), StandardCharsets.UTF_8))
            {
                for (final Measured caller : measured)
                {
                    for (final long time : caller.times)
                    {
                        file.println(time);
                    }
                }
            }
        }
    }
}
