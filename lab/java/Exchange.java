import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * One side of an exchange of messages that both sides can compute. The first 8 bytes of message {@code n} are
 * {@code n}, little endian. Byte {@code i} after these bytes is {@code 31 n + 7 i}.
 *
 * <pre>Exchange publish|subscribe DIR CHANNEL STREAM COUNT</pre>
 *
 * Prints {@code ready} when it is connected. A publisher prints {@code done COUNT} when it has sent all messages. A
 * subscriber prints {@code done COUNT} when all messages have arrived in order and unharmed. The other side is
 * {@code rusteron-media-driver/tests/it/java.rs}.
 */
public final class Exchange
{
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final int HEADER_LENGTH = 8;

    private final UnsafeBuffer expected = new UnsafeBuffer(new byte[HEADER_LENGTH + 3000]);
    private int received;

    public static void main(final String[] args)
    {
        if (args.length != 5)
        {
            System.err.println("usage: Exchange publish|subscribe DIR CHANNEL STREAM COUNT");
            System.exit(2);
        }
        final String channel = args[2];
        final int streamId = Integer.parseInt(args[3]);
        final int count = Integer.parseInt(args[4]);
        final Aeron.Context context = new Aeron.Context()
            .aeronDirectoryName(args[1])
            .driverTimeoutMs(PATIENCE_NS / 1_000_000)
            .errorHandler(Throwable::printStackTrace);
        try (Aeron aeron = Aeron.connect(context))
        {
            if ("publish".equals(args[0]))
            {
                new Exchange().publish(aeron, channel, streamId, count);
            }
            else
            {
                new Exchange().subscribe(aeron, channel, streamId, count);
            }
        }
        System.out.println("done " + count);
    }

    private void publish(final Aeron aeron, final String channel, final int streamId, final int count)
    {
        final long deadline = System.nanoTime() + PATIENCE_NS;
        try (Publication publication = aeron.addPublication(channel, streamId))
        {
            while (!publication.isConnected())
            {
                await("a subscriber", deadline);
            }
            System.out.println("ready");
            for (int number = 0; number < count; number++)
            {
                final int length = fill(number);
                long position;
                while ((position = publication.offer(expected, 0, length)) < 0)
                {
                    if (position == Publication.CLOSED || position == Publication.MAX_POSITION_EXCEEDED)
                    {
                        throw new IllegalStateException("offer: " + position);
                    }
                    await("a place for message " + number, deadline);
                }
            }
            // Closing the publication of an IPC channel discards messages that the subscriber has not read.
            while (publication.isConnected())
            {
                await("the subscriber's end", deadline);
            }
        }
    }

    private void subscribe(final Aeron aeron, final String channel, final int streamId, final int count)
    {
        final long deadline = System.nanoTime() + PATIENCE_NS;
        final FragmentAssembler handler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final int expectedLength = fill(received);
            if (length != expectedLength)
            {
                throw new IllegalStateException("message " + received + " is " + length + " long");
            }
            for (int i = 0; i < length; i++)
            {
                if (buffer.getByte(offset + i) != expected.getByte(i))
                {
                    throw new IllegalStateException("message " + received + " differs at " + i);
                }
            }
            received++;
        });
        try (Subscription subscription = aeron.addSubscription(channel, streamId))
        {
            System.out.println("ready");
            while (received < count)
            {
                if (subscription.poll((buffer, offset, length, header) ->
                    handler.onFragment(buffer, offset, length, header), 10) == 0)
                {
                    await("message " + received, deadline);
                }
            }
        }
    }

    /** Makes a message and returns its length. */
    private int fill(final int number)
    {
        final int length = HEADER_LENGTH + (int)(number * 37L % 3000);
        expected.putLong(0, number);
        for (int i = 0; i < length - HEADER_LENGTH; i++)
        {
            expected.putByte(HEADER_LENGTH + i, (byte)(31 * number + 7 * i));
        }
        return length;
    }

    private static void await(final String what, final long deadline)
    {
        if (System.nanoTime() - deadline > 0)
        {
            throw new IllegalStateException("waited in vain: " + what);
        }
        Thread.yield();
    }
}
