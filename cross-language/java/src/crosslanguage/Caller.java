package crosslanguage;

import crosslanguage.codecs.Encoding;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.Status;
import io.aeron.Aeron;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** The caller's program. */
public final class Caller
{
    /** The greatest argument that this program's callback accepts. */
    private static final long CALLBACK_LIMIT = 12;
    /** Longer results are printed as their length and hash. */
    private static final int RESULT_LIMIT = 120;

    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private Caller()
    {
    }

    /**
     * Calls the service.
     *
     * @param args see the README.
     */
    public static void main(final String[] args)
    {
        final Options options = new Options(
            args,
            Set.of("--aeron-dir", "--request-channel", "--response-channel", "--encoding", "--timeout-ms", "--idle",
                "--check", "--wrong-input", "--measure", "--calls"),
            Set.of("--endless"));
        int status = 0;
        try
        {
            run(options);
        }
        catch (final FailureException ex)
        {
            System.err.println("error: " + ex.status + ": " + ex.getMessage());
            status = 1;
        }
        catch (final Exception ex)
        {
            System.err.println("error: " + (ex instanceof CallException ? ex.getMessage() : ex.toString()));
            status = 1;
        }
        OUT.flush();
        System.exit(status);
    }

    private static void run(final Options options) throws Exception
    {
        final Aeron.Context context = new Aeron.Context();
        if (options.has("--aeron-dir"))
        {
            context.aeronDirectoryName(options.get("--aeron-dir", null));
        }
        final Encoding encoding = Encoding.valueOf(options.get("--encoding", "binary").toUpperCase(Locale.ROOT));
        try (Aeron aeron = Aeron.connect(context);
            ServiceCaller caller = new ServiceCaller(
                aeron,
                options.get("--request-channel", Contract.REQUEST_CHANNEL),
                options.get("--response-channel", Contract.RESPONSE_CHANNEL),
                options.nanos("--timeout-ms"),
                options.idleStrategy(),
                Caller::square))
        {
            if (options.has("--check"))
            {
                check(caller, encoding, lines(options.get("--check", null)));
            }
            else if (options.has("--wrong-input"))
            {
                wrongInput(caller, lines(options.get("--wrong-input", null)));
            }
            else if (options.has("--measure"))
            {
                final int calls = Integer.parseInt(options.get("--calls", "10000"));
                measure(caller, encoding, calls, Integer.parseInt(options.get("--measure", null)));
            }
            else
            {
                endless(caller, encoding);
            }
        }
    }

    private static List<String> lines(final String path) throws IOException
    {
        return Files.readAllLines(Path.of(path));
    }

    private static long square(final long argument) throws FailureException
    {
        if (argument < 0 || argument > CALLBACK_LIMIT)
        {
            throw new FailureException(Status.CALLBACK_FAILED, argument + " is not in 0 to " + CALLBACK_LIMIT);
        }
        return argument * argument;
    }

    /** Calls {@code OPERATION ARGUMENT}, the argument in JSON, for each line. */
    private static void check(final ServiceCaller caller, final Encoding encoding, final List<String> cases)
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
                result = shortened(CanonicalText.of(kind, caller.call(operation, encoding, argument)));
            }
            catch (final FailureException ex)
            {
                result = ex.status.name();
            }
            OUT.println((i + 1) + " " + words[0] + " " + result);
        }
    }

    /** Sends the message in {@code LABEL HEX} for each line. */
    private static void wrongInput(final ServiceCaller caller, final List<String> cases) throws CallException
    {
        for (final String line : cases)
        {
            final String[] words = line.split(" ", 2);
            final int body = caller.callRaw(HexFormat.of().parseHex(words[1]));
            final short number = caller.response().statusRaw();
            String status = number > Status.LIMIT_REACHED.value() ? "status " + number : Status.get(number).name();
            if (number == Status.OK.value())
            {
                final byte[] bytes = new byte[caller.message().capacity() - body];
                caller.message().getBytes(body, bytes);
                status += " " + HexFormat.of().formatHex(bytes);
            }
            OUT.println(words[0] + " " + caller.response().correlationId() + " " + status);
        }
    }

    /** Prints mean, median, 95th and 99th percentile and maximum of the calls' times. */
    private static void measure(
        final ServiceCaller caller, final Encoding encoding, final int calls, final int payload)
        throws CallException, FailureException
    {
        final Operation operation = payload == 0 ? Operation.PING : Operation.REVERSE;
        final String argument = payload == 0 ? null : "a".repeat(payload);
        final long[] times = new long[calls];
        for (int i = 0; i < 2 * calls; i++)
        {
            final long start = System.nanoTime();
            caller.call(operation, encoding, argument);
            if (i >= calls)
            {
                times[i - calls] = System.nanoTime() - start;
            }
        }
        Arrays.sort(times);
        final StringBuilder line = new StringBuilder().append(Arrays.stream(times).sum() / calls);
        for (final int percent : new int[]{50, 95, 99, 100})
        {
            line.append(' ').append(times[(int)((calls - 1L) * percent / 100)]);
        }
        OUT.println(line);
    }

    private static void endless(final ServiceCaller caller, final Encoding encoding)
        throws CallException, FailureException
    {
        final long[] argument = new long[10_000];
        for (int i = 0; i < argument.length; i++)
        {
            argument[i] = i;
        }
        for (boolean isFirst = true; ; isFirst = false)
        {
            caller.call(Operation.TOTAL, encoding, argument);
            if (isFirst)
            {
                OUT.println("calling");
                OUT.flush();
            }
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
}
