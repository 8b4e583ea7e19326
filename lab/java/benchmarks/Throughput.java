import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.BufferUtil;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The contender of ipc-throughput, on a running driver. Publishes on threads of its own, or, with 0 PUBLISHERS, on one
 * thread with an exclusive publication. Receives on another thread. Prints "slice NANOSECONDS BYTES" for each slice of the measured
 * time. At the end, prints "done MESSAGES BYTES": all published messages and all received bytes.
 *
 * Ends at once when its standard input is closed.
 */
public class Throughput
{
    private static final int BURST_LENGTH = 1_000_000;
    private static final long BURST_BYTES = 64 << 20;

    private static volatile boolean running = true;
    private static final AtomicLong PUBLISHED = new AtomicLong();
    private static final AtomicLong RECEIVED_BYTES = new AtomicLong();
    private static final AtomicReference<Throwable> FAILURE = new AtomicReference<>();

    public static void main(final String[] args) throws InterruptedException
    {
        Contender.checkArguments(args, "Throughput DIR CHANNEL STREAM_ID MESSAGE_LENGTH FRAGMENT_LIMIT IDLE PUBLISHERS" +
            " WARMUP_NS MEASURE_NS SLICE_NS");
        final String channel = args[1];
        final int streamId = Integer.parseInt(args[2]);
        final int messageLength = Integer.parseInt(args[3]);
        final int fragmentLimit = Integer.parseInt(args[4]);
        final String idle = args[5];
        final int publishers = Integer.parseInt(args[6]);
        final long warmup = Long.parseLong(args[7]);
        final long measure = Long.parseLong(args[8]);
        final long slice = Long.parseLong(args[9]);
        Contender.endWithStandardInput();

        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[0]));
            Publication publication = publishers == 0 ?
                aeron.addExclusivePublication(channel, streamId) : aeron.addPublication(channel, streamId);
            Subscription subscription = aeron.addSubscription(channel, streamId))
        {
            while (!publication.isConnected() || !subscription.isConnected())
            {
                Thread.sleep(1);
            }

            final Thread[] threads = new Thread[Math.max(publishers, 1)];
            for (int i = 0; i < threads.length; i++)
            {
                threads[i] = start("publisher", () -> publish(publication, messageLength, Contender.idleStrategy(idle)));
            }
            final Thread subscriber =
                start("subscriber", () -> receive(subscription, fragmentLimit, Contender.idleStrategy(idle)));

            sample(warmup, measure, slice);
            running = false;
            for (final Thread thread : threads)
            {
                thread.join();
            }
            final long expected = PUBLISHED.get() * messageLength;
            final long deadline = System.nanoTime() + 10_000_000_000L;
            while (RECEIVED_BYTES.get() < expected && System.nanoTime() - deadline < 0 && FAILURE.get() == null)
            {
                Thread.sleep(1);
            }
            subscriber.interrupt();
            subscriber.join();
            if (FAILURE.get() != null)
            {
                FAILURE.get().printStackTrace();
                System.exit(1);
            }
        }
        // The client is closed first. After "done", the parent closes our standard input, which ends this program. A
        // half-written command would then block all later commands until the driver takes this client for dead.
        System.out.println("done " + PUBLISHED.get() + " " + RECEIVED_BYTES.get());
        System.exit(0);
    }

    private static void publish(final Publication publication, final int length, final IdleStrategy idleStrategy)
    {
        final UnsafeBuffer buffer = new UnsafeBuffer(BufferUtil.allocateDirectAligned(length, 64));
        final long burstLength = Math.min(BURST_LENGTH, (BURST_BYTES + length - 1) / length);
        long messages = 0;

        burst:
        while (running)
        {
            for (long i = 0; i < burstLength; i++)
            {
                idleStrategy.reset();
                while (!Contender.isAccepted(publication.offer(buffer, 0, length, null)))
                {
                    if (!running)
                    {
                        break burst;
                    }
                    idleStrategy.idle();
                }
                messages++;
            }
        }
        PUBLISHED.addAndGet(messages);
    }

    private static void receive(
        final Subscription subscription, final int fragmentLimit, final IdleStrategy idleStrategy)
    {
        final long[] bytes = new long[1];
        final FragmentHandler handler = (buffer, offset, length, header) -> bytes[0] += length;
        while (running || !Thread.currentThread().isInterrupted())
        {
            final int fragments = subscription.poll(handler, fragmentLimit);
            if (fragments > 0)
            {
                RECEIVED_BYTES.lazySet(bytes[0]);
            }
            idleStrategy.idle(fragments);
        }
    }

    private static void sample(final long warmup, final long measure, final long slice) throws InterruptedException
    {
        sleepUntil(System.nanoTime() + warmup);
        final long start = System.nanoTime();
        final StringBuilder lines = new StringBuilder();
        long taken = start;
        long bytes = RECEIVED_BYTES.get();
        while (FAILURE.get() == null && taken - start < measure)
        {
            sleepUntil(Math.min(taken + slice, start + measure));
            final long now = System.nanoTime();
            final long received = RECEIVED_BYTES.get();
            // If the end cuts the last slice short, the slice is left out, unless it is the only slice.
            if (now - taken >= slice / 2 || lines.length() == 0)
            {
                lines.append("slice ").append(now - taken).append(' ').append(received - bytes).append('\n');
            }
            taken = now;
            bytes = received;
        }
        System.out.print(lines);
    }

    private static void sleepUntil(final long deadline) throws InterruptedException
    {
        long remaining;
        while ((remaining = deadline - System.nanoTime()) > 0)
        {
            Thread.sleep(remaining / 1_000_000, (int)(remaining % 1_000_000));
        }
    }

    private static Thread start(final String name, final Runnable body)
    {
        final Thread thread = new Thread(
            () ->
            {
                try
                {
                    body.run();
                }
                catch (final Throwable failure)
                {
                    FAILURE.compareAndSet(null, failure);
                    running = false;
                }
            },
            name);
        thread.start();
        return thread;
    }
}
