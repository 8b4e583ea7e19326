import io.aeron.Publication;
import io.aeron.shadow.org.HdrHistogram.Histogram;
import io.aeron.shadow.org.HdrHistogram.HistogramIterationValue;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NoOpIdleStrategy;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.io.IOException;

/** The parts that the contenders share. The loops of each are those of the benchmark in Rust. */
final class Contender
{
    private static final long LONGEST = 60_000_000_000L;

    private Contender()
    {
    }

    /** Prints the usage and exits unless there are as many arguments as it names. */
    static void checkArguments(final String[] args, final String usage)
    {
        if (args.length != usage.split(" ").length - 1)
        {
            System.err.println("usage: " + usage);
            System.exit(2);
        }
    }

    /** Ends this program with its parent, so that no process is left running. */
    static void endWithStandardInput()
    {
        onEndOfStandardInput(() -> Runtime.getRuntime().halt(0));
    }

    static void onEndOfStandardInput(final Runnable action)
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
                action.run();
            },
            "standard-input");
        thread.setDaemon(true);
        thread.start();
    }

    static IdleStrategy idleStrategy(final String name)
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

    /** Returns whether an offer was accepted, and throws if repeating it does not help. */
    static boolean isAccepted(final long result)
    {
        if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED)
        {
            throw new IllegalStateException("offer: " + Publication.errorString(result));
        }
        return result >= 0;
    }

    /** A histogram of nanoseconds with three digits. */
    static Histogram histogram()
    {
        return new Histogram(LONGEST, 3);
    }

    static void record(final Histogram histogram, final long nanos)
    {
        histogram.recordValue(Math.min(Math.max(nanos, 1), LONGEST));
    }

    /** Prints "latency NANOSECONDS COUNT" for each value. */
    static void print(final Histogram histogram)
    {
        final StringBuilder lines = new StringBuilder();
        for (final HistogramIterationValue value : histogram.recordedValues())
        {
            lines.append("latency ").append(value.getValueIteratedTo()).append(' ')
                .append(value.getCountAtValueIteratedTo()).append('\n');
        }
        System.out.print(lines);
    }
}
