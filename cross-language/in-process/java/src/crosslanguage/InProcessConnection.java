package crosslanguage;

import crosslanguage.codecs.Encoding;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.Status;
import org.agrona.ExpandableDirectByteBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;

/** A session with the service in this process, over the C library. Subclasses differ in the way from Java to C. */
abstract class InProcessConnection implements Connection
{
    private static final int POINTER_LENGTH = 8;

    private final Encoding encoding;
    private final Bodies bodies = new Bodies();
    private final ExpandableDirectByteBuffer argument = new ExpandableDirectByteBuffer(1024);
    /** Where the library writes address and length of the result. */
    private final UnsafeBuffer outputs = new UnsafeBuffer(ByteBuffer.allocateDirect(2 * POINTER_LENGTH));
    private final UnsafeBuffer result = new UnsafeBuffer(0, 0);

    InProcessConnection(final Encoding encoding)
    {
        this.encoding = encoding;
    }

    /** Calls {@code cross_language_call} with addresses. */
    abstract int callLibrary(
        byte operation, byte encoding, long argument, long argumentLength, long result, long resultLength);

    @Override
    public final Object call(final Operation operation, final Object body) throws CallException, FailureException
    {
        try
        {
            final int length = bodies.write(Contract.argument(operation), encoding, body, argument, 0);
            final int status = callLibrary(
                (byte)operation.value(), (byte)encoding.value(), argument.addressOffset(), length,
                outputs.addressOffset(), outputs.addressOffset() + POINTER_LENGTH);
            if (status < 0)
            {
                throw new IllegalStateException("the library returned " + status);
            }
            // The library's memory, until the next call. Reading copies.
            result.wrap(outputs.getLong(0), (int)outputs.getLong(POINTER_LENGTH));
            if (status == Status.OK.value())
            {
                return bodies.read(Contract.result(operation), encoding, result, 0);
            }
            throw new FailureException(
                Status.get((short)status), (String)bodies.read(Kind.TEXT, encoding, result, 0));
        }
        catch (final MalformedException ex)
        {
            throw new CallException(CallException.Reason.MALFORMED_RESPONSE, ex.getMessage());
        }
    }

    /** Answers a callback: with the square of a small integer. Called by the library. */
    static long answer(final long argument) throws FailureException
    {
        return Modes.square(argument);
    }

    /** The caller's program, with a constructor of connections. */
    static void main(final String[] args, final Function<Encoding, Connection> connect)
    {
        final Options options = new Options(args, Modes.options("--encoding"), Set.of());
        int status = 0;
        try
        {
            final Encoding encoding = Encoding.valueOf(options.get("--encoding", "binary").toUpperCase(Locale.ROOT));
            if (!Modes.run(options, () -> connect.apply(encoding)))
            {
                System.err.println("one of --check, --measure and --connect-cycles is required");
                status = 2;
            }
        }
        catch (final Exception ex)
        {
            System.err.println("error: " + ex);
            status = 1;
        }
        Modes.OUT.flush();
        System.exit(status);
    }
}
