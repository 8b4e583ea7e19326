package crosslanguage;

import crosslanguage.codecs.Encoding;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.Status;
import io.aeron.Aeron;

import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** The caller's program. */
public final class Caller
{
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
            Modes.options(
                "--aeron-dir", "--request-channel", "--response-channel", "--encoding", "--timeout-ms", "--idle",
                "--wrong-input"),
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
        Modes.OUT.flush();
        System.exit(status);
    }

    private static void run(final Options options) throws Exception
    {
        final Encoding encoding = Encoding.valueOf(options.get("--encoding", "binary").toUpperCase(Locale.ROOT));
        if (Modes.run(options, () -> new AeronConnection(options, encoding)))
        {
            return;
        }
        try (AeronConnection connection = new AeronConnection(options, encoding))
        {
            if (options.has("--wrong-input"))
            {
                wrongInput(connection.caller, Modes.lines(options.get("--wrong-input", null)));
            }
            else
            {
                endless(connection.caller, encoding);
            }
        }
    }

    /** A session over an Aeron client of its own. */
    private static final class AeronConnection implements Connection
    {
        private final Aeron aeron;
        private final Encoding encoding;
        final ServiceCaller caller;

        AeronConnection(final Options options, final Encoding encoding) throws CallException
        {
            final Aeron.Context context = new Aeron.Context();
            if (options.has("--aeron-dir"))
            {
                context.aeronDirectoryName(options.get("--aeron-dir", null));
            }
            this.encoding = encoding;
            aeron = Aeron.connect(context);
            try
            {
                caller = new ServiceCaller(
                    aeron,
                    options.get("--request-channel", Contract.REQUEST_CHANNEL),
                    options.get("--response-channel", Contract.RESPONSE_CHANNEL),
                    options.nanos("--timeout-ms"),
                    options.idleStrategy(),
                    Modes::square);
            }
            catch (final CallException | RuntimeException ex)
            {
                aeron.close();
                throw ex;
            }
        }

        @Override
        public Object call(final Operation operation, final Object argument) throws CallException, FailureException
        {
            return caller.call(operation, encoding, argument);
        }

        @Override
        public void close()
        {
            caller.close();
            aeron.close();
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
            Modes.OUT.println(words[0] + " " + caller.response().correlationId() + " " + status);
        }
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
                Modes.OUT.println("calling");
                Modes.OUT.flush();
            }
        }
    }
}
