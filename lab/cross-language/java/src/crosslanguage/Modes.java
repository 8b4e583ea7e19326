package crosslanguage;

import com.google.protobuf.ByteString;
import crosslanguage.Contract.CallException;
import crosslanguage.Contract.FailureException;
import crosslanguage.protocol.Failure;
import crosslanguage.protocol.Request;
import crosslanguage.protocol.Response;
import crosslanguage.protocol.Status;
import crosslanguage.protocol.Void;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.CyclicBarrier;

/** The modes of a caller's program, equal over all transports: checking, measuring, connecting. */
final class Modes
{
    private static final Request PING = Request.newBuilder().setPing(Void.getDefaultInstance()).build();
    /** The greatest argument that a program's callback accepts. */
    private static final long CALLBACK_LIMIT = 12;

    /** A connection with a server, for one thread. */
    interface Connection extends AutoCloseable
    {
        /**
         * Calls with a request, and returns its response, which may be a failure. Over Aeron, the
         * request gets a correlation id.
         */
        Response call(Request request) throws Exception;

        @Override
        void close();
    }

    /** Connects. Calls take at most a time. */
    interface Connector
    {
        Connection connect(long timeoutNs) throws Exception;
    }

    private final Connector connector;
    private final long timeoutNs;
    private final int calls;
    private final int callers;
    private final long warmupNs;

    private Modes(final Options options, final Connector connector)
    {
        this.connector = connector;
        timeoutNs = options.milliseconds("--timeout-ms", 5_000);
        calls = options.integer("--calls", 10_000);
        callers = options.integer("--callers", 1);
        warmupNs = options.milliseconds("--warmup-ms", 5_000);
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

    /** Runs the mode that the options choose, and ends the program. */
    static void run(final Options options, final Connector connector)
    {
        final Modes modes = new Modes(options, connector);
        final String cases = options.get("--check", null);
        final int payload = options.integer("--measure", -1);
        final int cycles = options.integer("--connect-cycles", 0);
        options.end();
        try
        {
            if (cases != null)
            {
                modes.check(cases);
            }
            else if (payload >= 0)
            {
                modes.measure(payload);
            }
            else
            {
                modes.connectCycles(cycles);
            }
        }
        catch (final Exception ex)
        {
            fail(ex);
        }
        System.exit(0);
    }

    private static void fail(final Exception error)
    {
        final boolean isNamed = error instanceof CallException;
        System.err.println("error: " + (isNamed ? error.getMessage() : error.toString()));
        System.exit(1);
    }

    private Connection connect() throws Exception
    {
        return connector.connect(timeoutNs);
    }

    /** Calls with the request of each line, and prints the responses, in hexadecimal digits. */
    private void check(final String cases) throws Exception
    {
        final StringBuilder results = new StringBuilder();
        try (Connection connection = connect())
        {
            for (final String line : Files.readAllLines(Path.of(cases)))
            {
                final Request request = Request.parseFrom(HexFormat.of().parseHex(line));
                results.append(HexFormat.of().formatHex(connection.call(request).toByteArray())).append('\n');
            }
        }
        System.out.print(results);
        System.out.flush();
    }

    /** Times the calls of concurrent callers. A caller that fails ends the program, because the others wait for it. */
    private void measure(final int payload) throws Exception
    {
        final long[] times = new long[calls * callers];
        final long[] ends = new long[callers];
        final long[] start = new long[1];
        final CyclicBarrier barrier = new CyclicBarrier(
            callers,
            () ->
            {
                System.out.println("measuring");
                start[0] = System.nanoTime();
            });
        final Thread[] threads = new Thread[callers];
        for (int i = 0; i < callers; i++)
        {
            final int index = i;
            threads[i] = new Thread(
                () ->
                {
                    try
                    {
                        ends[index] = runCaller(payload, times, index * calls, barrier);
                    }
                    catch (final Exception ex)
                    {
                        fail(ex);
                    }
                });
            threads[i].start();
        }
        for (final Thread thread : threads)
        {
            thread.join();
        }
        report(Arrays.stream(ends).map(end -> end - start[0]).max().orElse(0), times);
    }

    /** Connects, warms up, and after a common beginning times its calls. Returns the time of the end. */
    private long runCaller(final int payload, final long[] times, final int first, final CyclicBarrier barrier)
        throws Exception
    {
        try (Connection connection = connect())
        {
            final String text = "abcdefghijklmnopqrstuvwxyz".repeat(payload / 26 + 1).substring(0, payload);
            // The bytes of a text are encoded faster than its characters.
            final Request request = payload == 0 ?
                PING : Request.newBuilder().setReverseBytes(ByteString.copyFromUtf8(text)).build();
            final Response response = checkedCall(connection, request);
            if (!response.getReverse().equals(new StringBuilder(text).reverse().toString()))
            {
                throw new IllegalStateException("wrong result");
            }
            for (final long begin = System.nanoTime(); System.nanoTime() - begin < warmupNs;)
            {
                checkedCall(connection, request);
            }
            barrier.await();
            for (int i = first; i < first + calls; i++)
            {
                final long start = System.nanoTime();
                checkedCall(connection, request);
                times[i] = System.nanoTime() - start;
            }
            return System.nanoTime();
        }
    }

    /** Connects, calls {@code PING} and closes, again and again. */
    private void connectCycles(final int cycles) throws Exception
    {
        final long[] times = new long[cycles];
        final long begin = System.nanoTime();
        for (int i = 0; i < cycles; i++)
        {
            final long start = System.nanoTime();
            try (Connection connection = connect())
            {
                checkedCall(connection, PING);
            }
            times[i] = System.nanoTime() - start;
        }
        report(System.nanoTime() - begin, times);
    }

    /** Calls, and fails unless the response has the outcome of the operation. */
    private static Response checkedCall(final Connection connection, final Request request) throws Exception
    {
        final Response response = connection.call(request);
        if (response.getOutcomeCase().getNumber() == request.getOperationCase().getNumber())
        {
            return response;
        }
        if (response.hasFailure())
        {
            final Failure failure = response.getFailure();
            throw new CallException(failure.getStatus().name(), failure.getText());
        }
        throw new IllegalStateException("the outcome of another operation");
    }

    /**
     * Prints the time of all calls, and of each, in nanoseconds. Flushes the first line at once,
     * because the program {@code measure} samples this process when that line arrives.
     */
    private static void report(final long elapsed, final long[] times)
    {
        System.out.println(elapsed);
        System.out.flush();
        final StringBuilder lines = new StringBuilder();
        Arrays.stream(times).forEach(time -> lines.append(time).append('\n'));
        System.out.print(lines);
        System.out.flush();
    }
}
