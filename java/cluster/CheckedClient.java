import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteOrder;

/**
 * Proves with Java's own client that a cluster with {@code NumberService} loses and repeats nothing, also when its
 * leader dies. The client sends one request after the other, again after a second without an answer, and compares the
 * answers. Afterwards it asks for all numbers a second time.
 *
 * <pre>CheckedClient DIR INGRESS_ENDPOINTS COUNT PAUSE_MS</pre>
 *
 * DIR is the directory of a running media driver. Prints {@code answered ID} for every tenth request, and
 * {@code done COUNT} at the end.
 */
public final class CheckedClient implements EgressListener
{
    private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
    private static final long RETRY_NS = 1_000_000_000L;
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final int LENGTH = 17;

    private final UnsafeBuffer request = new UnsafeBuffer(new byte[LENGTH]);
    private long attempts;
    private long id;
    private boolean isAnswered;

    public static void main(final String[] args)
    {
        if (args.length != 4)
        {
            System.err.println("usage: CheckedClient DIR INGRESS_ENDPOINTS COUNT PAUSE_MS");
            System.exit(2);
        }
        new CheckedClient().run(args[0], args[1], Integer.parseInt(args[2]), Long.parseLong(args[3]));
        System.exit(0);
    }

    private void run(final String dir, final String endpoints, final int count, final long pauseMs)
    {
        final AeronCluster.Context context = new AeronCluster.Context()
            .aeronDirectoryName(dir)
            .ingressChannel("aeron:udp")
            .ingressEndpoints(endpoints)
            .egressChannel("aeron:udp?endpoint=localhost:0")
            .messageTimeoutNs(PATIENCE_NS / 2)
            .egressListener(this);
        try (AeronCluster cluster = AeronCluster.connect(context))
        {
            for (int i = 1; i <= count; i++)
            {
                ask(cluster, i);
                if (i % 10 == 0)
                {
                    System.out.println("answered " + i);
                }
                pause(cluster, pauseMs);
            }
            for (int i = 1; i <= count; i++)
            {
                ask(cluster, i);
            }
        }
        System.out.println("done " + count);
    }

    private void ask(final AeronCluster cluster, final long id)
    {
        this.id = id;
        isAnswered = false;
        final long deadline = System.nanoTime() + PATIENCE_NS;
        while (!isAnswered)
        {
            attempts++;
            request.putByte(0, (byte)'n');
            request.putLong(1, id, ORDER);
            request.putLong(9, attempts, ORDER);
            long end = System.nanoTime() + RETRY_NS;
            boolean isSent = false;
            while (!isAnswered && System.nanoTime() < end)
            {
                if (!isSent && cluster.offer(request, 0, LENGTH) > 0)
                {
                    isSent = true;
                    end = System.nanoTime() + RETRY_NS;
                }
                poll(cluster);
            }
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException("no answer to " + id);
            }
        }
    }

    private static void pause(final AeronCluster cluster, final long pauseMs)
    {
        final long end = System.nanoTime() + pauseMs * 1_000_000;
        while (System.nanoTime() < end)
        {
            poll(cluster);
        }
    }

    private static void poll(final AeronCluster cluster)
    {
        if (cluster.pollEgress() == 0)
        {
            Thread.yield();
        }
        if (cluster.isClosed())
        {
            throw new IllegalStateException("the session is closed");
        }
    }

    public void onMessage(
        final long clusterSessionId,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        final long number = buffer.getLong(offset, ORDER);
        final long answeredId = buffer.getLong(offset + 9, ORDER);
        final long attempt = buffer.getLong(offset + 17, ORDER);
        // Requests are sent in order, so the service numbers them in order.
        if (length != 8 + LENGTH || number != answeredId)
        {
            throw new IllegalStateException("request " + answeredId + " has number " + number);
        }
        if (attempt == attempts)
        {
            if (isAnswered)
            {
                throw new IllegalStateException("two answers to " + answeredId);
            }
            isAnswered = true;
        }
    }

    public void onNewLeader(
        final long clusterSessionId, final long leadershipTermId, final int leaderMemberId, final String endpoints)
    {
        System.out.println("leader " + leaderMemberId);
    }
}
