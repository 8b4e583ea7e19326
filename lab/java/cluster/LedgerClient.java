import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteOrder;

/**
 * Sends requests to a ledger, one after the other, checks the answers, and prints {@code answered COUNT}. The requests
 * have the ids from 1 on.
 */
final class LedgerClient implements EgressListener
{
    private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

    private long answered;

    public static void main(final String[] args)
    {
        if (args.length != 3)
        {
            System.err.println("usage: LedgerClient AERON_DIR INGRESS_ENDPOINTS COUNT");
            System.exit(2);
        }
        final LedgerClient client = new LedgerClient();
        final IdleStrategy idleStrategy = new BackoffIdleStrategy();
        final UnsafeBuffer request = new UnsafeBuffer(new byte[17]);
        try (AeronCluster cluster = AeronCluster.connect(new AeronCluster.Context()
            .aeronDirectoryName(args[0])
            .ingressChannel("aeron:udp")
            .ingressEndpoints(args[1])
            .egressChannel("aeron:udp?endpoint=localhost:0")
            .messageTimeoutNs(60_000_000_000L)
            .egressListener(client)))
        {
            for (long id = 1; id <= Long.parseLong(args[2]); id++)
            {
                request.putByte(0, (byte)'n');
                request.putLong(1, id, ORDER);
                request.putLong(9, id, ORDER);
                while (cluster.offer(request, 0, request.capacity()) < 0)
                {
                    idleStrategy.idle(cluster.pollEgress());
                }
                while (client.answered < id)
                {
                    idleStrategy.idle(cluster.pollEgress());
                }
            }
        }
        System.out.println("answered " + client.answered);
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
        final long id = buffer.getLong(offset + 9, ORDER);
        if (length != 41 || number != answered + 1 || id != number)
        {
            throw new IllegalStateException(length + " bytes, number " + number + ", request " + id);
        }
        answered++;
    }
}
