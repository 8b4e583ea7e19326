package crosslanguage;

import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NoOpIdleStrategy;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** The command line: options with a value, and at most one of the flags. */
final class Options
{
    private final Map<String, String> values = new HashMap<>();

    Options(final String[] args, final Set<String> names, final Set<String> flags)
    {
        for (int i = 0; i < args.length; i++)
        {
            if (flags.contains(args[i]))
            {
                values.put(args[i], "");
            }
            else if (names.contains(args[i]) && i + 1 < args.length)
            {
                values.put(args[i], args[++i]);
            }
            else
            {
                System.err.println("unknown option, or no value: " + args[i] + "; options: " + names + ' ' + flags);
                System.exit(2);
            }
        }
    }

    String get(final String name, final String defaultValue)
    {
        return values.getOrDefault(name, defaultValue);
    }

    boolean has(final String name)
    {
        return values.containsKey(name);
    }

    int integer(final String name, final int defaultValue)
    {
        return has(name) ? Integer.parseInt(get(name, null)) : defaultValue;
    }

    long nanos(final String name)
    {
        return Long.parseLong(get(name, "5000")) * 1_000_000;
    }

    IdleStrategy idleStrategy()
    {
        final String name = get("--idle", "backoff");
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
}
