package crosslanguage;

import com.google.protobuf.CodedInputStream;
import crosslanguage.Contract.CallException;
import io.aeron.Aeron;
import io.aeron.ErrorCode;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.exceptions.RegistrationException;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** A connection over an Aeron client of its own. */
final class AeronTransport implements Transport
{
    private final Aeron aeron;
    private final Subscription responses;
    private final ExclusivePublication requests;
    private final IdleStrategy idle;
    private final FragmentAssembler assembler = new FragmentAssembler(this::onMessage);
    /** Whether the server has opened its response channel. */
    private boolean isAnswered;
    private final UnsafeBuffer buffer = new UnsafeBuffer(0, 0);
    private final Bytes bytes = new Bytes();
    /** The message that the handler has received, or null. */
    private CodedInputStream received;

    AeronTransport(final Options options, final long timeoutNs) throws CallException
    {
        idle = options.idleStrategy();
        final long deadline = System.nanoTime() + timeoutNs;
        aeron = Aeron.connect(options.context());
        try
        {
            responses = added(
                () -> aeron.addSubscription(options.responseChannel, Contract.RESPONSE_STREAM), deadline);
            final String channel = options.requestChannel + (options.requestChannel.indexOf('?') < 0 ? '?' : '|') +
                "response-correlation-id=" + responses.registrationId();
            requests = added(() -> aeron.addExclusivePublication(channel, Contract.REQUEST_STREAM), deadline);
            while (!requests.isConnected())
            {
                if (System.nanoTime() - deadline > 0)
                {
                    throw notConnected();
                }
                idle.idle(0);
            }
        }
        catch (final CallException | RuntimeException ex)
        {
            aeron.close();
            throw ex;
        }
    }

    /**
     * Adds a publication or subscription. Tries again until the deadline while the driver closes a socket of the address:
     * the last session over UDP may have used the same.
     */
    private static <T> T added(final Supplier<T> add, final long deadline)
    {
        while (true)
        {
            try
            {
                return add.get();
            }
            catch (final RegistrationException ex)
            {
                if (ex.errorCode() != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE || System.nanoTime() - deadline >= 0)
                {
                    throw ex;
                }
            }
            LockSupport.parkNanos(1_000_000);
        }
    }

    @Override
    public void close()
    {
        requests.close();
        responses.close();
        aeron.close();
    }

    @Override
    public void send(final Bytes request, final long deadline) throws CallException
    {
        if (request.length > requests.maxMessageLength())
        {
            throw new CallException(
                "INVALID_REQUEST", request.length + " bytes: at most " + requests.maxMessageLength());
        }
        buffer.wrap(request.array, 0, request.length);
        long position;
        idle.reset();
        while ((position = requests.offer(buffer, 0, request.length)) < 0)
        {
            if (position == Publication.NOT_CONNECTED)
            {
                throw notConnected();
            }
            if (position == Publication.CLOSED || position == Publication.MAX_POSITION_EXCEEDED)
            {
                throw new CallException("CLOSED", Publication.errorString(position));
            }
            if (System.nanoTime() - deadline > 0)
            {
                throw new CallException("BACK_PRESSURED", "the request was not accepted in time");
            }
            idle.idle(0);
        }
    }

    @Override
    public CodedInputStream receive(final long deadline) throws CallException
    {
        received = null;
        // A backoff would go on with the longest sleep of the last wait.
        idle.reset();
        while (true)
        {
            final int fragments = responses.poll(assembler, 1);
            if (received != null)
            {
                return received;
            }
            if (fragments > 0)
            {
                idle.reset();
                continue;
            }
            final boolean hasResponses = responses.isConnected();
            isAnswered |= hasResponses;
            if (!requests.isConnected() || isAnswered && !hasResponses)
            {
                throw notConnected();
            }
            if (System.nanoTime() - deadline > 0)
            {
                throw new CallException("TIMED_OUT", "no response in time");
            }
            idle.idle(0);
        }
    }

    private static CallException notConnected()
    {
        return new CallException("NOT_CONNECTED", "no server is connected");
    }

    private void onMessage(final DirectBuffer message, final int offset, final int length, final Header header)
    {
        received = bytes.read(message, offset, length);
    }
}
