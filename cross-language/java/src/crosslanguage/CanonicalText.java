package crosslanguage;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The canonical text of results, equal in all languages. */
final class CanonicalText
{
    private final StringBuilder text = new StringBuilder();

    private CanonicalText()
    {
    }

    static String of(final Kind kind, final Object body)
    {
        final CanonicalText canonical = new CanonicalText();
        if (body instanceof Kind.Pair)
        {
            final Kind.Pair pair = (Kind.Pair)body;
            canonical.append(Map.of(kind.first, pair.first(), kind.second, pair.second()));
        }
        else if (body instanceof long[])
        {
            canonical.append(Arrays.stream((long[])body).boxed().toList());
        }
        else
        {
            canonical.append(body);
        }
        return canonical.text.toString();
    }

    private void append(final Object value)
    {
        if (value instanceof Double)
        {
            text.append(String.format("0x%016x", Double.doubleToRawLongBits((Double)value)));
        }
        else if (value instanceof String)
        {
            appendText((String)value);
        }
        else if (value instanceof List)
        {
            text.append('[');
            String separator = "";
            for (final Object member : (List<?>)value)
            {
                text.append(separator);
                append(member);
                separator = ",";
            }
            text.append(']');
        }
        else if (value instanceof Map)
        {
            // In the order of bytes in UTF-8, which is not that of UTF-16.
            final TreeMap<byte[], Object> members = new TreeMap<>(Arrays::compareUnsigned);
            ((Map<?, ?>)value).forEach(
                (key, member) -> members.put(((String)key).getBytes(StandardCharsets.UTF_8), member));
            text.append('{');
            String separator = "";
            for (final Map.Entry<byte[], Object> member : members.entrySet())
            {
                text.append(separator);
                appendText(new String(member.getKey(), StandardCharsets.UTF_8));
                text.append(':');
                append(member.getValue());
                separator = ",";
            }
            text.append('}');
        }
        else
        {
            text.append(value);
        }
    }

    private void appendText(final String value)
    {
        text.append('"');
        for (int i = 0; i < value.length(); i++)
        {
            final char unit = value.charAt(i);
            if (unit == '"' || unit == '\\')
            {
                text.append('\\').append(unit);
            }
            else if (unit < ' ')
            {
                text.append(String.format("\\u%04x", (int)unit));
            }
            else
            {
                text.append(unit);
            }
        }
        text.append('"');
    }
}
