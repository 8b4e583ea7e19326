package crosslanguage;

import crosslanguage.protocol.Response;
import crosslanguage.protocol.Status;
import io.aeron.Aeron;
import io.aeron.ErrorCode;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.RegistrationException;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A caller's session over Aeron: its response channel, and the responses that wait for it. */
final class Session
{
    /** Most bytes that wait for the caller, or for its channel. */
    private static final int QUEUE_LIMIT = 16 << 20;
    /** How long a new session waits while the driver closes its socket. */
    private static final long SOCKET_CLOSING_NS = 1_000_000_000;
    /** Time between two tries to open the response channel. */
    private static final long OPENING_PAUSE_NS = 1_000_000;

    /** The correlation id of the image of the session's requests. */
    private final long image;
    private final Service service;
    private final long clientTimeoutNs;
    /** Null before the channel is open, and after the server has closed the session. */
    private ExclusivePublication responses;
    private boolean isClosed;
    private long nextTry = System.nanoTime();
    /** When the tries to open the channel end. 0 before the first one. */
    private long openingDeadline;
    /** Requests before the channel is open, then responses that could not be sent yet. */
    private final ArrayDeque<byte[]> queue = new ArrayDeque<>();
    private int queuedBytes;
    /** Since when the first response of the queue waits. */
    private long waitingSince;
    private final Bytes input = new Bytes();
    private final Bytes output = new Bytes();
    private final UnsafeBuffer buffer = new UnsafeBuffer(0, 0);

    Session(final long image, final long clientTimeoutNs, final long callbackTimeoutNs)
    {
        this.image = image;
        this.clientTimeoutNs = clientTimeoutNs;
        service = new Service(callbackTimeoutNs);
    }

    long image()
    {
        return image;
    }

    /** Handles a message of the caller. A closed session ignores it. */
    void receive(final DirectBuffer message, final int offset, final int length)
    {
        if (responses != null)
        {
            send(service.receive(input.read(message, offset, length)));
        }
        else if (!isClosed)
        {
            final byte[] bytes = new byte[length];
            message.getBytes(offset, bytes);
            enqueue(bytes);
        }
    }

    /** Opens the response channel, and sends responses that had to wait. Returns how many. */
    int doWork(final Aeron aeron, final String responseChannel)
    {
        if (responses == null && !isClosed && System.nanoTime() - nextTry >= 0)
        {
            open(aeron, responseChannel + "|response-correlation-id=" + image);
        }
        return queue.isEmpty() || responses == null ? 0 : sendQueue();
    }

    /**
     * Opens the response channel. Tries again in a later call while the driver closes a socket: the
     * last session over UDP may have used the same.
     */
    private void open(final Aeron aeron, final String channel)
    {
        try
        {
            responses = aeron.addExclusivePublication(channel, Contract.RESPONSE_STREAM);
            final List<byte[]> requests = new ArrayList<>(queue);
            queue.clear();
            queuedBytes = 0;
            requests.forEach(request -> receive(new UnsafeBuffer(request), 0, request.length));
        }
        catch (final AeronException ex)
        {
            final long now = System.nanoTime();
            if (!(ex instanceof RegistrationException) ||
                ((RegistrationException)ex).errorCode() != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE ||
                openingDeadline != 0 && now - openingDeadline >= 0)
            {
                close(ex.getMessage());
                return;
            }
            if (openingDeadline == 0)
            {
                System.err.println("session " + image + " waits: " + ex.getMessage());
                openingDeadline = now + SOCKET_CLOSING_NS;
            }
            nextTry = now + OPENING_PAUSE_NS;
        }
    }

    private void send(final Response response)
    {
        if (responses == null)
        {
            return;
        }
        final int length = response.getSerializedSize();
        if (length > responses.maxMessageLength())
        {
            final String text = length + " bytes: at most " + responses.maxMessageLength();
            send(Service.failed(response.getCorrelationId(), Status.RESPONSE_TOO_LONG, text));
            return;
        }
        output.write(response);
        if (queue.isEmpty())
        {
            final long position = offer(output.array, length);
            if (position > 0 || isFinal(position))
            {
                return;
            }
            waitingSince = System.nanoTime();
        }
        enqueue(Arrays.copyOf(output.array, length));
    }

    private long offer(final byte[] message, final int length)
    {
        buffer.wrap(message, 0, length);
        return responses.offer(buffer, 0, length);
    }

    private void enqueue(final byte[] message)
    {
        queue.add(message);
        queuedBytes += message.length;
        if (queuedBytes > QUEUE_LIMIT)
        {
            close("more than " + QUEUE_LIMIT + " bytes wait for its caller");
        }
    }

    private int sendQueue()
    {
        int workCount = 0;
        while (!queue.isEmpty())
        {
            final long position = offer(queue.peek(), queue.peek().length);
            if (position < 0)
            {
                isFinal(position);
                break;
            }
            queuedBytes -= queue.remove().length;
            waitingSince = System.nanoTime();
            workCount++;
        }
        return workCount;
    }

    /** Closes the session if a result of an offer says that no other will be accepted. */
    private boolean isFinal(final long position)
    {
        final boolean isFinal = position == Publication.CLOSED || position == Publication.MAX_POSITION_EXCEEDED;
        if (isFinal)
        {
            close(Publication.errorString(position));
        }
        return isFinal;
    }

    void checkDeadlines(final long now)
    {
        if (responses != null && !queue.isEmpty() && now - waitingSince > clientTimeoutNs)
        {
            close("its caller has read nothing for " + clientTimeoutNs / 1_000_000 + " ms");
        }
        service.expire(now).forEach(this::send);
    }

    /** Closes the response channel, which tells the caller that the session is over. */
    private void close(final String reason)
    {
        System.err.println("session " + image + " closed: " + reason);
        release();
    }

    void release()
    {
        isClosed = true;
        if (responses != null)
        {
            responses.close();
            responses = null;
        }
        queue.clear();
    }
}
