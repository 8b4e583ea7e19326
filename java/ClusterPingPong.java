import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.Publication;
import io.aeron.logbuffer.Header;
import io.aeron.shadow.org.HdrHistogram.Histogram;
import io.aeron.shadow.org.HdrHistogram.HistogramIterationValue;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NoOpIdleStrategy;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.io.IOException;

/**
 * The Java contender of benchmark_cluster, with the loop of the Rust program, on the media driver of a running member.
 * Sends messages to the echo service while fewer than WINDOW wait for their answers. Prints a histogram of the round
 * trips, "latency NANOSECONDS COUNT" for each value. "done ANSWERS NANOSECONDS" at the end says how many answers have
 * arrived in the measured time.
 *
 * Ends at once when its standard input is closed.
 */
public final class ClusterPingPong implements EgressListener
{
    private static final long LONGEST = 60_000_000_000L;

    private final Histogram histogram = new Histogram(LONGEST, 3);
    private long measureFrom;
    private long sent;
    private long received;

    public static void main(final String[] args)
    {
        if (args.length != 9)
        {
            System.err.println("usage: ClusterPingPong DIR INGRESS_CHANNEL INGRESS_ENDPOINTS|- EGRESS_CHANNEL" +
                " IDLE MESSAGE_LENGTH WINDOW WARMUP_NS MEASURE_NS");
            System.exit(2);
        }
        endWithStandardInput();
        final ClusterPingPong program = new ClusterPingPong();
        final AeronCluster.Context context = new AeronCluster.Context()
            .aeronDirectoryName(args[0])
            .ingressChannel(args[1])
            .ingressEndpoints("-".equals(args[2]) ? null : args[2])
            .egressChannel(args[3])
            .messageTimeoutNs(LONGEST)
            .egressListener(program);
        final String outcome;
        try (AeronCluster cluster = AeronCluster.connect(context))
        {
            outcome = program.run(
                cluster,
                idleStrategy(args[4]),
                Integer.parseInt(args[5]),
                Long.parseLong(args[6]),
                Long.parseLong(args[7]),
                Long.parseLong(args[8]));
        }
        final StringBuilder lines = new StringBuilder();
        for (final HistogramIterationValue value : program.histogram.recordedValues())
        {
            lines.append("latency ").append(value.getValueIteratedTo()).append(' ')
                .append(value.getCountAtValueIteratedTo()).append('\n');
        }
        System.out.print(lines);
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
                if (!isTaken(cluster.offer(message, 0, messageLength)))
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

    private static boolean isTaken(final long result)
    {
        if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED ||
            result == Publication.NOT_CONNECTED)
        {
            throw new IllegalStateException("offer: " + Publication.errorString(result));
        }
        return result >= 0;
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
            histogram.recordValue(Math.min(Math.max(System.nanoTime() - sentAt, 1), LONGEST));
        }
        received++;
    }

    private static IdleStrategy idleStrategy(final String name)
    {
        switch (name)
        {
            case "spin":
                return new BusySpinIdleStrategy();
            case "yield":
                return new YieldingIdleStrategy();
            case "sleep-ns":
                return new SleepingIdleStrategy(1_000);
            case "backoff":
                return new BackoffIdleStrategy(10, 20, 1_000, 1_000_000);
            case "noop":
                return new NoOpIdleStrategy();
            default:
                throw new IllegalArgumentException("idle strategy: " + name);
        }
    }

    /** Ends this program with its parent, so that no process is left running. */
    private static void endWithStandardInput()
    {
        final Thread thread = new Thread(
            () ->
            {
                try
                {
                    while (System.in.read() >= 0)
                    {
                        continue;
                    }
                }
                catch (final IOException ignore)
                {
                    // A failed read counts as closed.
                }
                Runtime.getRuntime().halt(0);
            },
            "standard-input");
        thread.setDaemon(true);
        thread.start();
    }
}
