import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.shadow.org.HdrHistogram.Histogram;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.AgentInvoker;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * One side of udp-round-trips: application, client and driver in one loop, as invokers. As
 * "ping" it prints a histogram, "latency NANOSECONDS COUNT" for each value, and "done". As "pong" it sends every
 * message back. Ends when its standard input is closed.
 */
public class RoundTrips
{
    private static final int STREAM_ID = 1001;
    private static final int FRAGMENT_LIMIT = 10;
    private static final long DEADLINE_NS = 20_000_000_000L;

    private static volatile boolean running = true;

    private final Histogram histogram = Contender.histogram();
    private final AgentInvoker driver;
    private final AgentInvoker conductor;
    private final ExclusivePublication publication;
    private final Subscription subscription;
    private long measureFrom;
    private long received;

    private RoundTrips(
        final AgentInvoker driver,
        final AgentInvoker conductor,
        final ExclusivePublication publication,
        final Subscription subscription)
    {
        this.driver = driver;
        this.conductor = conductor;
        this.publication = publication;
        this.subscription = subscription;
    }

    public static void main(final String[] args)
    {
        Contender.checkArguments(args, "RoundTrips ping|pong DIR TO FROM TERM_LENGTH MESSAGE_LENGTH WARMUP_NS MEASURE_NS");
        Contender.onEndOfStandardInput(() -> running = false);
        final MediaDriver.Context driverContext = new MediaDriver.Context()
            .aeronDirectoryName(args[1])
            .threadingMode(ThreadingMode.INVOKER);
        try (MediaDriver driver = MediaDriver.launch(driverContext);
            Aeron aeron = Aeron.connect(new Aeron.Context()
                .aeronDirectoryName(args[1])
                .useConductorAgentInvoker(true)
                .driverAgentInvoker(driver.sharedAgentInvoker()));
            Subscription subscription = aeron.addSubscription("aeron:udp?endpoint=" + args[3], STREAM_ID);
            ExclusivePublication publication = aeron.addExclusivePublication(
                "aeron:udp?endpoint=" + args[2] + "|term-length=" + args[4], STREAM_ID))
        {
            final RoundTrips side = new RoundTrips(
                driver.sharedAgentInvoker(), aeron.conductorAgentInvoker(), publication, subscription);
            System.out.println("ready");
            side.connect();
            if ("pong".equals(args[0]))
            {
                side.pong();
            }
            else
            {
                side.ping(Integer.parseInt(args[5]), Long.parseLong(args[6]), Long.parseLong(args[7]));
                Contender.print(side.histogram);
                System.out.println("done");
            }
        }
        System.exit(0);
    }

    private void work()
    {
        driver.invoke();
        conductor.invoke();
    }

    /** The client has a turn when there is no message. */
    private void receive(final FragmentHandler handler)
    {
        driver.invoke();
        if (subscription.poll(handler, FRAGMENT_LIMIT) == 0)
        {
            conductor.invoke();
        }
    }

    private void connect()
    {
        final long start = System.nanoTime();
        while (!publication.isConnected() || !subscription.isConnected())
        {
            work();
            checkDeadline(start);
        }
    }

    private static void checkDeadline(final long start)
    {
        if (!running || System.nanoTime() - start > DEADLINE_NS)
        {
            throw new IllegalStateException("the other side does not answer");
        }
    }

    private void offer(final DirectBuffer buffer, final int offset, final int length)
    {
        while (!Contender.isAccepted(publication.offer(buffer, offset, length, null)) && running)
        {
            work();
        }
    }

    private void pong()
    {
        final FragmentHandler handler = (buffer, offset, length, header) -> offer(buffer, offset, length);
        while (running)
        {
            receive(handler);
        }
    }

    private void ping(final int length, final long warmup, final long measure)
    {
        final UnsafeBuffer message = new UnsafeBuffer(BufferUtil.allocateDirectAligned(length, 64));
        final FragmentHandler handler = this::onPong;
        long now = System.nanoTime();
        measureFrom = now + warmup;
        final long end = measureFrom + measure;
        for (long sent = 0; now < end || histogram.getTotalCount() == 0; now = System.nanoTime())
        {
            message.putLong(0, now);
            offer(message, 0, length);
            sent++;
            for (int turns = 0; received < sent; turns++)
            {
                receive(handler);
                if (turns % 1024 == 0)
                {
                    checkDeadline(now);
                }
            }
        }
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
}
