import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;

/** Answers each message with its bytes. */
class EchoService implements ClusteredService
{
    /** A new leader waits so long for a client's subscription, before it drops an answer. */
    private static final long CONNECT_TIMEOUT_NS = 2_000_000_000L;

    protected Cluster cluster;

    public void onStart(final Cluster cluster, final Image snapshotImage)
    {
        this.cluster = cluster;
    }

    public void onSessionMessage(
        final ClientSession session,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        if (session != null)
        {
            answer(session, buffer, offset, length);
        }
    }

    /** Sends an answer, unless the client is gone. */
    protected void answer(
        final ClientSession session, final DirectBuffer buffer, final int offset, final int length)
    {
        long result = session.offer(buffer, offset, length);
        // Benchmarks compare this service with one in Rust: an answer that is accepted at once takes no clock call.
        if (result >= 0)
        {
            return;
        }
        final long start = System.nanoTime();
        cluster.idleStrategy().reset();
        while (true)
        {
            final boolean isRetryable = result == Publication.BACK_PRESSURED || result == Publication.ADMIN_ACTION ||
                (result == Publication.NOT_CONNECTED && System.nanoTime() - start < CONNECT_TIMEOUT_NS);
            if (!isRetryable || session.isClosing())
            {
                if (result < 0)
                {
                    Node.print("session " + session.id() + ": answer dropped: " + Publication.errorString(result));
                }
                return;
            }
            cluster.idleStrategy().idle();
            result = session.offer(buffer, offset, length);
        }
    }

    public void onSessionOpen(final ClientSession session, final long timestamp)
    {
        Node.print("session " + session.id() + " opened by '" + new String(session.encodedPrincipal()) + "'");
    }

    public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason closeReason)
    {
        Node.print("session " + session.id() + " closed: " + closeReason);
    }

    public void onTimerEvent(final long correlationId, final long timestamp)
    {
    }

    public void onTakeSnapshot(final ExclusivePublication snapshotPublication)
    {
    }

    public void onRoleChange(final Cluster.Role newRole)
    {
        Node.print("member " + cluster.memberId() + " is " + newRole);
    }

    public void onTerminate(final Cluster cluster)
    {
        Node.print("terminating");
    }
}
