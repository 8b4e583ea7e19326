import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
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
 * The Java contender of benchmark_ipc_latency, with the loops of the Rust program, on a running driver. As "pong" it prints
 * "ready" and sends every message back. As "both" it also sends the messages, from another thread, and measures the
 * round trips. It then prints a histogram: "latency NANOSECONDS COUNT" for each value, and "done" at the end.
 *
 * Ends at once when its standard input is closed.
 */
public class PingPong
{
    private static final int FRAGMENT_LIMIT = 10;
    private static final long LONGEST = 60_000_000_000L;

    private static volatile boolean running = true;

    public static void main(final String[] args) throws Exception
    {
        if (args.length != 11)
        {
            System.err.println("usage: PingPong pong|both DIR PING_CHANNEL PING_STREAM_ID PONG_CHANNEL PONG_STREAM_ID" +
                " IDLE MESSAGE_LENGTH WARMUP_NS MEASURE_NS INTERVAL_NS (INTERVAL_NS: 0 for the next ping after a pong)");
            System.exit(2);
        }
        final String pingChannel = args[2];
        final int pingStreamId = Integer.parseInt(args[3]);
        final String pongChannel = args[4];
        final int pongStreamId = Integer.parseInt(args[5]);
        final String idle = args[6];
        endWithStandardInput();

        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1]));
            Subscription pings = aeron.addSubscription(pingChannel, pingStreamId);
            ExclusivePublication pongs = aeron.addExclusivePublication(pongChannel, pongStreamId))
        {
            if ("pong".equals(args[0]))
            {
                System.out.println("ready");
                pong(pings, pongs, idleStrategy(idle));
                return;
            }
            final Thread ponger = new Thread(() -> pong(pings, pongs, idleStrategy(idle)), "pong");
            ponger.setDaemon(true);
            ponger.start();
            try (Subscription returned = aeron.addSubscription(pongChannel, pongStreamId);
                ExclusivePublication sent = aeron.addExclusivePublication(pingChannel, pingStreamId))
            {
                while (!returned.isConnected() || !sent.isConnected() || !pings.isConnected() || !pongs.isConnected())
                {
                    Thread.sleep(1);
                }
                final Pinger pinger = new Pinger(sent, returned, idleStrategy(idle), Integer.parseInt(args[7]));
                pinger.ping(Long.parseLong(args[8]), Long.parseLong(args[9]), Long.parseLong(args[10]));
                print(pinger.histogram);
            }
            running = false;
            ponger.join();
        }
        // The client is closed first. After "done", the parent closes our standard input, which ends this program. A
        // half-written command would then block all later commands until the driver takes this client for dead.
        System.out.println("done");
        System.exit(0);
    }

    private static void pong(final Subscription pings, final Publication pongs, final IdleStrategy idleStrategy)
    {
        final FragmentHandler handler = (buffer, offset, length, header) ->
        {
            while (running && !isTaken(pongs.offer(buffer, offset, length, null)))
            {
                idleStrategy.idle();
            }
        };
        while (running)
        {
            idleStrategy.idle(pings.poll(handler, FRAGMENT_LIMIT));
        }
    }

    private static boolean isTaken(final long result)
    {
        if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED)
        {
            throw new IllegalStateException("offer: " + Publication.errorString(result));
        }
        return result >= 0;
    }

    private static final class Pinger
    {
        final Histogram histogram = new Histogram(LONGEST, 3);
        private final Publication pings;
        private final Subscription pongs;
        private final IdleStrategy idleStrategy;
        private final UnsafeBuffer message;
        private final FragmentHandler handler = this::onPong;
        private long measureFrom;
        private long received;

        Pinger(
            final Publication pings, final Subscription pongs, final IdleStrategy idleStrategy, final int messageLength)
        {
            this.pings = pings;
            this.pongs = pongs;
            this.idleStrategy = idleStrategy;
            message = new UnsafeBuffer(BufferUtil.allocateDirectAligned(messageLength, 64));
        }

        private void onPong(final DirectBuffer buffer, final int offset, final int length, final Object header)
        {
            final long sent = buffer.getLong(offset);
            if (sent >= measureFrom)
            {
                histogram.recordValue(Math.min(Math.max(System.nanoTime() - sent, 1), LONGEST));
            }
            received++;
        }

        void ping(final long warmup, final long measure, final long interval)
        {
            final long start = System.nanoTime();
            measureFrom = start + warmup;
            final long end = measureFrom + measure;
            if (interval == 0)
            {
                pingPong(end);
            }
            else
            {
                pace(start, end, interval);
            }
        }

        /** Sends the next message when the last message is back. Measures at least one message. */
        private void pingPong(final long end)
        {
            long sent = 0;
            long now;
            while ((now = System.nanoTime()) < end || histogram.getTotalCount() == 0)
            {
                message.putLong(0, now);
                while (!isTaken(pings.offer(message)))
                {
                    idleStrategy.idle();
                }
                sent++;
                while (received < sent)
                {
                    idleStrategy.idle(pongs.poll(handler, FRAGMENT_LIMIT));
                }
            }
        }

        /** Sends messages at their planned times. Latencies count from these times, also for delayed messages. */
        private void pace(final long start, final long end, final long interval)
        {
            long intended = start;
            long sent = 0;
            while (intended < end || received < sent)
            {
                int work = 0;
                if (intended < end && System.nanoTime() >= intended)
                {
                    message.putLong(0, intended);
                    if (isTaken(pings.offer(message)))
                    {
                        intended += interval;
                        sent++;
                        work = 1;
                    }
                }
                idleStrategy.idle(work + pongs.poll(handler, FRAGMENT_LIMIT));
            }
        }
    }

    private static void print(final Histogram histogram)
    {
        final StringBuilder lines = new StringBuilder();
        for (final HistogramIterationValue value : histogram.recordedValues())
        {
            lines.append("latency ").append(value.getValueIteratedTo()).append(' ')
                .append(value.getCountAtValueIteratedTo()).append('\n');
        }
        System.out.print(lines);
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
