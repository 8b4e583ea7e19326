import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.shadow.org.HdrHistogram.Histogram;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The contender of ipc-latency, on a running driver. One thread sends messages, the next one when the last is back or, with
 * an INTERVAL_NS other than 0, at fixed times. Another thread sends them back. Prints a histogram of the round trips, and
 * "done" at the end.
 *
 * Ends at once when its standard input is closed.
 */
public class PingPong
{
    private static final int FRAGMENT_LIMIT = 10;

    private static volatile boolean running = true;

    public static void main(final String[] args) throws Exception
    {
        Contender.checkArguments(args, "PingPong DIR PING_CHANNEL PONG_CHANNEL STREAM_ID IDLE MESSAGE_LENGTH WARMUP_NS" +
            " MEASURE_NS INTERVAL_NS");
        final String pingChannel = args[1];
        final String pongChannel = args[2];
        final int pingStreamId = Integer.parseInt(args[3]);
        final int pongStreamId = pingStreamId + 1;
        final String idle = args[4];
        Contender.endWithStandardInput();

        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[0]));
            Subscription pings = aeron.addSubscription(pingChannel, pingStreamId);
            ExclusivePublication pongs = aeron.addExclusivePublication(pongChannel, pongStreamId))
        {
            final Thread ponger = new Thread(() -> pong(pings, pongs, Contender.idleStrategy(idle)), "pong");
            ponger.setDaemon(true);
            ponger.start();
            try (Subscription returned = aeron.addSubscription(pongChannel, pongStreamId);
                ExclusivePublication sent = aeron.addExclusivePublication(pingChannel, pingStreamId))
            {
                while (!returned.isConnected() || !sent.isConnected() || !pings.isConnected() || !pongs.isConnected())
                {
                    Thread.sleep(1);
                }
                final Pinger pinger = new Pinger(sent, returned, Contender.idleStrategy(idle), Integer.parseInt(args[5]));
                pinger.ping(Long.parseLong(args[6]), Long.parseLong(args[7]), Long.parseLong(args[8]));
                Contender.print(pinger.histogram);
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
            while (running && !Contender.isAccepted(pongs.offer(buffer, offset, length, null)))
            {
                idleStrategy.idle();
            }
        };
        while (running)
        {
            idleStrategy.idle(pings.poll(handler, FRAGMENT_LIMIT));
        }
    }

    private static final class Pinger
    {
        final Histogram histogram = Contender.histogram();
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
                Contender.record(histogram, System.nanoTime() - sent);
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
                while (!Contender.isAccepted(pings.offer(message)))
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
                    if (Contender.isAccepted(pings.offer(message)))
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
}
