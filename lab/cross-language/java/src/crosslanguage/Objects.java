package crosslanguage;

import crosslanguage.Contract.FailureException;
import crosslanguage.Contract.Pair;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.Status;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The operations, without messages, and the objects of a session. */
final class Objects
{
    /** The value of object 1, of object 2, … */
    private final List<Long> values = new ArrayList<>();

    /** Executes an operation other than {@link Operation#CALLBACK}, which needs the caller. */
    Object execute(final Operation operation, final Object argument) throws FailureException
    {
        switch (operation)
        {
            case PING:
                return null;

            case SUCCESSOR:
                return add((Long)argument, 1);

            case REVERSE:
                return reversed((String)argument);

            case RUNNING_SUMS:
                return runningSums((long[])argument);

            case CREATE:
                return create((Pair)argument);

            case CALL:
                return call((Pair)argument);

            case TRANSFORM_ALL:
                if (!(argument instanceof List))
                {
                    throw invalid("not a list");
                }
                return transformed(argument);

            case TRANSFORM:
                return transformed(argument);

            case TOTAL:
                long total = 0;
                for (final long value : (long[])argument)
                {
                    total = add(total, value);
                }
                return total;

            case SQUARES:
                return squares((Long)argument);

            default:
                throw new IllegalArgumentException("no operation without messages: " + operation);
        }
    }

    static FailureException invalid(final String text)
    {
        return new FailureException(Status.INVALID_ARGUMENT, text);
    }

    static long add(final long value, final long amount) throws FailureException
    {
        final long sum = value + amount;
        // Overflow: both summands have the sign that the sum lacks.
        if (((value ^ sum) & (amount ^ sum)) < 0)
        {
            throw invalid(value + " + " + amount + " is out of range");
        }
        return sum;
    }

    private Pair create(final Pair argument) throws FailureException
    {
        if (values.size() == Contract.OBJECT_LIMIT)
        {
            throw new FailureException(Status.LIMIT_REACHED, Contract.OBJECT_LIMIT + " objects");
        }
        final long value = add(argument.first(), argument.second());
        values.add(value);
        return new Pair(values.size(), value);
    }

    private Pair call(final Pair argument) throws FailureException
    {
        final long id = argument.first();
        if (id < 1 || id > values.size())
        {
            throw new FailureException(Status.UNKNOWN_OBJECT, "no object " + id);
        }
        final int index = (int)id - 1;
        final long value = add(values.get(index), argument.second());
        values.set(index, value);
        return new Pair(id, value);
    }

    private static long[] runningSums(final long[] values) throws FailureException
    {
        if (values.length > Contract.SMALL_ARRAY_LIMIT)
        {
            throw invalid(values.length + " integers: at most " + Contract.SMALL_ARRAY_LIMIT);
        }
        long sum = 0;
        for (int i = 0; i < values.length; i++)
        {
            sum = add(sum, values[i]);
            values[i] = sum;
        }
        return values;
    }

    private static long[] squares(final long count) throws FailureException
    {
        if (count < 0 || count > Contract.SQUARES_LIMIT)
        {
            throw invalid(count + " squares: 0 to " + Contract.SQUARES_LIMIT);
        }
        final long[] squares = new long[(int)count];
        for (int i = 0; i < squares.length; i++)
        {
            squares[i] = (long)i * i;
        }
        return squares;
    }

    private static String reversed(final String text)
    {
        // Keeps surrogate pairs. A Latin text has a short path in the JDK.
        return new StringBuilder(text).reverse().toString();
    }

    /** Changes each value in a way that shows that its type was understood. */
    private static Object transformed(final Object value) throws FailureException
    {
        if (value == null)
        {
            return null;
        }
        if (value instanceof Boolean)
        {
            return !(Boolean)value;
        }
        if (value instanceof Long)
        {
            if ((Long)value == Long.MIN_VALUE)
            {
                throw invalid("-(" + value + ") is out of range");
            }
            return -(Long)value;
        }
        if (value instanceof Double)
        {
            return (Double)value / 2;
        }
        if (value instanceof String)
        {
            return reversed((String)value);
        }
        if (value instanceof List)
        {
            final List<?> list = (List<?>)value;
            final List<Object> result = new ArrayList<>(list.size());
            for (int i = list.size() - 1; i >= 0; i--)
            {
                result.add(transformed(list.get(i)));
            }
            return result;
        }
        final Map<String, Object> result = new HashMap<>();
        for (final Map.Entry<?, ?> member : ((Map<?, ?>)value).entrySet())
        {
            result.put((String)member.getKey(), transformed(member.getValue()));
        }
        return result;
    }
}
