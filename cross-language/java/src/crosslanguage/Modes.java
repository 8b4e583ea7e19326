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
    private static final Set<String> OPTIONS = Set.of(
        "--check", "--measure", "--connect-cycles", "--calls", "--warmup", "--callers", "--samples");

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
        final int warmup = options.integer("--warmup", 10_000);
        final int callers = options.integer("--callers", 1);
        // Of all callers and this thread. A caller that fails ends it.
        final Phaser phases = new Phaser(callers + 1);
        final ExecutorService threads = Executors.newCachedThreadPool();
        final List<Future<long[]>> results = new ArrayList<>();
        for (int i = 0; i < callers; i++)
        {
            results.add(threads.submit(() -> runCaller(factory, payload, calls, warmup, phases)));
        }
        final long allocated;
        final long elapsed;
        try
        {
            // All are ready, begin, and have finished.
            awaitAll(phases);
            allocated = allocatedBytes();
            // Before the callers begin: afterwards, this thread may have to wait for a core.
            final long start = System.nanoTime();
            awaitAll(phases);
            awaitAll(phases);
            elapsed = System.nanoTime() - start;
        }
        catch (final BrokenBarrierException ex)
        {
            throw failure(results, ex);
        }
        final double allocatedPerCall = (double)(allocatedBytes() - allocated) / ((long)calls * callers);
        final List<long[]> times = new ArrayList<>();
        for (final Future<long[]> result : results)
        {
            times.add(result.get());
        }
        threads.shutdown();
        writeSamples(options, times);
        print(elapsed, (long)calls * callers, String.format(Locale.ROOT, "%.1f", allocatedPerCall));
    }

    private static void awaitAll(final Phaser phases) throws BrokenBarrierException
    {
        if (phases.arriveAndAwaitAdvance() < 0)
        {
            throw new BrokenBarrierException();
        }
    }

    /** Returns the failure of the caller that has ended the phases. */
    private static Exception failure(final List<Future<long[]>> results, final BrokenBarrierException broken)
        throws InterruptedException
    {
        for (final Future<long[]> result : results)
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

    /** A concurrent caller: connects, warms up, awaits the common beginning, and times its calls. */
    private static long[] runCaller(
        final Connection.Factory factory, final int payload, final int calls, final int warmup,
        final Phaser phases)
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
            for (int i = 0; i < warmup; i++)
            {
                connection.call(operation, text);
            }
            final long[] times = new long[calls];
            awaitAll(phases);
            awaitAll(phases);
            for (int i = 0; i < calls; i++)
            {
                final long start = System.nanoTime();
                connection.call(operation, text);
                times[i] = System.nanoTime() - start;
            }
            awaitAll(phases);
            return times;
        }
        catch (final Throwable ex)
        {
            // Ends the waiting of the others, of those that come later too.
            phases.forceTermination();
            throw ex;
        }
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
        writeSamples(options, List.of(times));
        print(elapsed, times.length, "null");
    }

    private static void writeSamples(final Options options, final List<long[]> samples) throws IOException
    {
        if (options.has("--samples"))
        {
            try (PrintWriter file = new PrintWriter(options.get("--samples", null), StandardCharsets.UTF_8))
            {
                for (final long[] times : samples)
                {
                    for (final long time : times)
                    {
                        file.println(time);
                    }
                }
            }
        }
    }

    private static void print(final long elapsed, final long calls, final String allocatedBytesPerCall)
    {
        OUT.println(
            "{\"elapsed_ns\":" + elapsed + ",\"calls\":" + calls +
            ",\"allocations_per_call\":null,\"allocated_bytes_per_call\":" + allocatedBytesPerCall + "}");
    }
}
