package crosslanguage;

import io.aeron.ErrorCode;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.RegistrationException;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayList;
import java.util.List;

/** A session whose response channel is not open yet. */
final class Opening
{
    /** How long a session waits while the driver closes its socket. */
    private static final long SOCKET_CLOSING_NS = 1_000_000_000;
    /** Time between two tries. */
    private static final long PAUSE_NS = 1_000_000;

    /** The correlation id of the image of the session's requests. */
    final long image;
    /** Messages that have arrived meanwhile. */
    private final List<DirectBuffer> messages = new ArrayList<>();
    private int bytes;
    private boolean isWaiting;
    private long nextTry = System.nanoTime();
    private long deadline;

    Opening(final long image)
    {
        this.image = image;
    }

    void add(final DirectBuffer buffer, final int offset, final int length)
    {
        final byte[] message = new byte[length];
        buffer.getBytes(offset, message);
        messages.add(new UnsafeBuffer(message));
        bytes += length;
    }

    List<DirectBuffer> messages()
    {
        return messages;
    }

    int bytes()
    {
        return bytes;
    }

    boolean isDue()
    {
        return System.nanoTime() - nextTry >= 0;
    }

    /** Returns false if another try does not help. */
    boolean waits(final AeronException error)
    {
        final long now = System.nanoTime();
        if (!(error instanceof RegistrationException) ||
            ((RegistrationException)error).errorCode() != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE ||
            isWaiting && now - deadline >= 0)
        {
            return false;
        }
        if (!isWaiting)
        {
            System.err.println("session " + image + " waits: " + error.getMessage());
            isWaiting = true;
            deadline = now + SOCKET_CLOSING_NS;
        }
        nextTry = now + PAUSE_NS;
        return true;
    }
}
