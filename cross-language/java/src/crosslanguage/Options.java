package crosslanguage;

import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NoOpIdleStrategy;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.util.HashMap;
import java.util.Map;

/** The command line: names and values. Each option is read before {@link #end()}. */
final class Options
{
    private final Map<String, String> values = new HashMap<>();
    private final Map<String, String> read = new HashMap<>();

    Options(final String[] args)
    {
        for (int i = 0; i < args.length; i += 2)
        {
            values.put(args[i], i + 1 < args.length ? args[i + 1] : "");
        }
    }

    String get(final String name, final String defaultValue)
    {
        read.put(name, "");
        return values.getOrDefault(name, defaultValue);
    }

    int integer(final String name, final int defaultValue)
    {
        return Integer.parseInt(get(name, Integer.toString(defaultValue)));
    }

    /** Returns a duration in nanoseconds. */
    long milliseconds(final String name, final int defaultValue)
    {
        return integer(name, defaultValue) * 1_000_000L;
    }

    /** Ends the program if there is an option that nothing has read. */
    void end()
    {
        if (!read.keySet().containsAll(values.keySet()))
        {
            System.err.println("options: " + read.keySet());
            System.exit(2);
        }
    }

    IdleStrategy idleStrategy()
    {
        final String name = get("--idle", "backoff");
        return switch (name)
        {
            case "spin" -> new BusySpinIdleStrategy();
            case "yield" -> new YieldingIdleStrategy();
            case "sleep-ns" -> new SleepingIdleStrategy(1_000);
            case "backoff" -> new BackoffIdleStrategy(10, 20, 1_000, 1_000_000);
            case "noop" -> new NoOpIdleStrategy();
            default -> throw new IllegalArgumentException("idle strategy: " + name);
        };
    }
}
