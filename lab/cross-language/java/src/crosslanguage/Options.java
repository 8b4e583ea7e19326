package crosslanguage;

import io.aeron.Aeron;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.util.HashMap;
import java.util.Map;

/** The command line: names and values. Each option is read before {@link #end()}. */
final class Options
{
    private final Map<String, String> values = new HashMap<>();
    private final Map<String, String> read = new HashMap<>();
    /** Null for Aeron's default. */
    private final String aeronDir;
    final String requestChannel;
    final String responseChannel;
    private final String idle;

    Options(final String[] args)
    {
        for (int i = 0; i < args.length; i += 2)
        {
            values.put(args[i], i + 1 < args.length ? args[i + 1] : "");
        }
        aeronDir = get("--aeron-dir", null);
        requestChannel = get("--request-channel", Contract.REQUEST_CHANNEL);
        responseChannel = get("--response-channel", Contract.RESPONSE_CHANNEL);
        idle = get("--idle", "backoff");
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

    Aeron.Context context()
    {
        final Aeron.Context context = new Aeron.Context();
        return aeronDir == null ? context : context.aeronDirectoryName(aeronDir);
    }

    IdleStrategy idleStrategy()
    {
        return switch (idle)
        {
            case "spin" -> new BusySpinIdleStrategy();
            case "yield" -> new YieldingIdleStrategy();
            case "backoff" -> new BackoffIdleStrategy(10, 20, 1_000, 1_000_000);
            default -> throw new IllegalArgumentException("idle strategy: " + idle);
        };
    }
}
