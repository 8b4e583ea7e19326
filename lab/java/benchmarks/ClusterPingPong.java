import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.logbuffer.Header;
import io.aeron.shadow.org.HdrHistogram.Histogram;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The contender of cluster, on the media driver of a running member. Sends messages to the echo service while fewer than WINDOW wait for their answers. Prints a histogram of the round
 * trips, "latency NANOSECONDS COUNT" for each value. "done ANSWERS NANOSECONDS" at the end says how many answers have
 * arrived in the measured time.
 *
 * Ends at once when its standard input is closed.
 */
public final class ClusterPingPong implements EgressListener
{
    private static final long TIMEOUT_NS = 60_000_000_000L;

    private final Histogram histogram = Contender.histogram();
    private long measureFrom;
    private long sent;
    private long received;

    public static void main(final String[] args)
    {
        Contender.checkArguments(args, "ClusterPingPong DIR INGRESS_CHANNEL INGRESS_ENDPOINTS|- EGRESS_CHANNEL" +
            " IDLE MESSAGE_LENGTH WINDOW WARMUP_NS MEASURE_NS");
        Contender.endWithStandardInput();
        final ClusterPingPong program = new ClusterPingPong();
        final AeronCluster.Context context = new AeronCluster.Context()
            .aeronDirectoryName(args[0])
            .ingressChannel(args[1])
            .ingressEndpoints("-".equals(args[2]) ? null : args[2])
            .egressChannel(args[3])
            .messageTimeoutNs(TIMEOUT_NS)
            .egressListener(program);
        final String outcome;
        try (AeronCluster cluster = AeronCluster.connect(context))
        {
            outcome = program.run(
                cluster,
                Contender.idleStrategy(args[4]),
                Integer.parseInt(args[5]),
                Long.parseLong(args[6]),
                Long.parseLong(args[7]),
                Long.parseLong(args[8]));
        }
        Contender.print(program.histogram);
        System.out.println(outcome);
        System.exit(0);
    }

    private String run(
        final AeronCluster cluster,
        final IdleStrategy idleStrategy,
        final int messageLength,
        final long window,
        final long warmup,
        final long measure)
    {
        final UnsafeBuffer message = new UnsafeBuffer(BufferUtil.allocateDirectAligned(messageLength, 64));
        final long start = System.nanoTime();
        measureFrom = start + warmup;
        final long end = measureFrom + measure;
        long first = -1;
        long now;
        while ((now = System.nanoTime()) < end || histogram.getTotalCount() == 0)
        {
            if (first < 0 && now >= measureFrom)
            {
                first = received;
            }
            int work = 0;
            while (sent - received < window)
            {
                message.putLong(0, System.nanoTime());
                if (!Contender.isAccepted(cluster.offer(message, 0, messageLength)))
                {
                    break;
                }
                sent++;
                work++;
            }
            idleStrategy.idle(work + cluster.pollEgress());
        }
        final long answers = received - Math.max(first, 0);
        final long elapsed = System.nanoTime() - measureFrom;
        while (received < sent)
        {
            idleStrategy.idle(cluster.pollEgress());
        }
        return "done " + answers + " " + elapsed;
    }

    public void onMessage(
        final long clusterSessionId,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        final long sentAt = buffer.getLong(offset);
        if (sentAt >= measureFrom)
        {
            Contender.record(histogram, System.nanoTime() - sentAt);
        }
        received++;
    }
}
