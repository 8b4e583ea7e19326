import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;

import java.io.IOException;

/**
 * The Java contender of benchmark_registrations, on a running driver, with the pauses of the Rust program. Each client
 * connects, adds an exclusive publication and a subscription, waits for the subscription's image, and closes. Prints
 * "times CONNECT PUBLICATION SUBSCRIPTION IMAGE CLOSE", in nanoseconds, for each repetition after the warm-up. Prints
 * "done" at the end.
 *
 * Ends at once when its standard input is closed.
 */
public class Registrations
{
    private static final int PAUSES = 20;
    private static final long PATIENCE_NS = 15_000_000_000L;

    public static void main(final String[] args) throws InterruptedException
    {
        if (args.length != 5)
        {
            System.err.println("usage: Registrations DIR CHANNEL FIRST_STREAM_ID WARMUP_NS REPETITIONS");
            System.exit(2);
        }
        final String dir = args[0];
        final String channel = args[1];
        int streamId = Integer.parseInt(args[2]);
        final long warmup = Long.parseLong(args[3]);
        final int repetitions = Integer.parseInt(args[4]);
        endWithStandardInput();

        final long start = System.nanoTime();
        for (int i = 0; System.nanoTime() - start < warmup; i++)
        {
            comeAndGo(dir, channel, streamId++, i);
        }
        for (int i = 0; i < repetitions; i++)
        {
            System.out.println("times " + comeAndGo(dir, channel, streamId++, i));
        }
        // The last client is closed first. After "done", the parent closes our standard input, which ends this program.
        // A half-written command would then block all later commands until the driver takes this client for dead.
        System.out.println("done");
        System.exit(0);
    }

    private static String comeAndGo(
        final String dir, final String channel, final int streamId, final int repetition) throws InterruptedException
    {
        long start = System.nanoTime();
        // The block closes the client twice. The second close has no effect.
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(dir)))
        {
            final long connected = System.nanoTime() - start;

            pauseBefore(1, repetition);
            start = System.nanoTime();
            final Publication publication = aeron.addExclusivePublication(channel, streamId);
            final long hasPublication = System.nanoTime() - start;

            pauseBefore(2, repetition);
            start = System.nanoTime();
            final Subscription subscription = aeron.addSubscription(channel, streamId);
            final long hasSubscription = System.nanoTime() - start;
            while (!subscription.isConnected())
            {
                if (System.nanoTime() - start >= PATIENCE_NS)
                {
                    throw new IllegalStateException("no image on stream " + streamId);
                }
                Thread.yield();
            }
            final long hasImage = System.nanoTime() - start;

            pauseBefore(3, repetition);
            start = System.nanoTime();
            publication.close();
            subscription.close();
            aeron.close();
            final long closed = System.nanoTime() - start;

            return connected + " " + hasPublication + " " + hasSubscription + " " + hasImage + " " + closed;
        }
    }

    private static void pauseBefore(final int step, final int repetition) throws InterruptedException
    {
        Thread.sleep((repetition + 7 * step) % PAUSES);
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
