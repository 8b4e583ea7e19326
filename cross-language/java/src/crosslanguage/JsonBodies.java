package crosslanguage;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Bodies through Jackson's streams. */
final class JsonBodies
{
    private final JsonFactory factory = JsonFactory.builder()
        .streamReadConstraints(StreamReadConstraints.builder().maxNameLength(Integer.MAX_VALUE).build())
        .build();
    private final ByteArrayOutputStream output = new ByteArrayOutputStream();

    int write(final Kind kind, final Object body, final MutableDirectBuffer buffer, final int index)
    {
        output.reset();
        try (JsonGenerator generator = factory.createGenerator(output))
        {
            switch (kind)
            {
                case INTEGERS:
                    final long[] values = (long[])body;
                    generator.writeArray(values, 0, values.length);
                    break;

                case CREATE_OBJECT:
                case CALL_OBJECT:
                case OBJECT_VALUE:
                    final Kind.Pair pair = (Kind.Pair)body;
                    generator.writeStartObject();
                    generator.writeNumberField(kind.first, pair.first());
                    generator.writeNumberField(kind.second, pair.second());
                    generator.writeEndObject();
                    break;

                default:
                    write(generator, body);
                    break;
            }
        }
        catch (final IOException ex)
        {
            throw new UncheckedIOException(ex);
        }
        final byte[] bytes = output.toByteArray();
        buffer.putBytes(index, bytes);
        return index + bytes.length;
    }

    private static void write(final JsonGenerator generator, final Object value) throws IOException
    {
        if (value == null)
        {
            generator.writeNull();
        }
        else if (value instanceof Boolean)
        {
            generator.writeBoolean((Boolean)value);
        }
        else if (value instanceof Long)
        {
            generator.writeNumber((Long)value);
        }
        else if (value instanceof Double)
        {
            generator.writeNumber((Double)value);
        }
        else if (value instanceof String)
        {
            generator.writeString((String)value);
        }
        else if (value instanceof List)
        {
            generator.writeStartArray();
            for (final Object member : (List<?>)value)
            {
                write(generator, member);
            }
            generator.writeEndArray();
        }
        else
        {
            generator.writeStartObject();
            for (final Map.Entry<?, ?> member : ((Map<?, ?>)value).entrySet())
            {
                generator.writeFieldName((String)member.getKey());
                write(generator, member.getValue());
            }
            generator.writeEndObject();
        }
    }

    Object read(final Kind kind, final DirectBuffer buffer, final int index) throws MalformedException
    {
        return read(kind, Bodies.utf8(buffer, index, buffer.capacity() - index));
    }

    Object read(final Kind kind, final String text) throws MalformedException
    {
        final Object value;
        final int[] nodes = {0};
        try (JsonParser parser = factory.createParser(text))
        {
            parser.nextToken();
            value = readValue(parser, nodes, 1);
            if (parser.nextToken() != null)
            {
                throw new MalformedException("two values");
            }
        }
        catch (final JsonProcessingException ex)
        {
            throw new MalformedException(ex.getOriginalMessage());
        }
        catch (final IOException ex)
        {
            throw new UncheckedIOException(ex);
        }
        switch (kind)
        {
            case VOID:
                if (value == null)
                {
                    return null;
                }
                break;

            case INTEGER:
                if (value instanceof Long)
                {
                    return value;
                }
                break;

            case TEXT:
                if (value instanceof String)
                {
                    return value;
                }
                break;

            case INTEGERS:
                if (value instanceof List && ((List<?>)value).stream().allMatch(Long.class::isInstance))
                {
                    return ((List<?>)value).stream().mapToLong(Long.class::cast).toArray();
                }
                break;

            case CREATE_OBJECT:
            case CALL_OBJECT:
            case OBJECT_VALUE:
                if (value instanceof Map)
                {
                    final Map<?, ?> map = (Map<?, ?>)value;
                    final Object first = map.get(kind.first);
                    final Object second = map.get(kind.second);
                    if (map.size() == 2 && first instanceof Long && second instanceof Long)
                    {
                        return new Kind.Pair((Long)first, (Long)second);
                    }
                }
                break;

            default:
                return value;
        }
        throw new MalformedException("not of the kind " + kind);
    }

    /** Reads the value that begins with the parser's current token. */
    private static Object readValue(final JsonParser parser, final int[] nodes, final int depth)
        throws IOException, MalformedException
    {
        // A list of integers has as many elements as a value has members.
        if (depth > Contract.DEPTH_LIMIT || ++nodes[0] > Contract.NODE_LIMIT + 1)
        {
            throw new MalformedException(
                "more than " + Contract.NODE_LIMIT + " values, or deeper than " + Contract.DEPTH_LIMIT);
        }
        final JsonToken token = parser.currentToken();
        if (token == null)
        {
            throw new MalformedException("no value");
        }
        switch (token)
        {
            case VALUE_NULL:
                return null;

            case VALUE_TRUE:
                return true;

            case VALUE_FALSE:
                return false;

            case VALUE_NUMBER_INT:
                // Out of range is a JsonProcessingException.
                return parser.getLongValue();

            case VALUE_NUMBER_FLOAT:
                final double number = parser.getDoubleValue();
                if (!Double.isFinite(number))
                {
                    throw new MalformedException("a number out of range: " + parser.getText());
                }
                return number;

            case VALUE_STRING:
                return checked(parser.getText());

            case START_ARRAY:
                final List<Object> list = new ArrayList<>();
                while (parser.nextToken() != JsonToken.END_ARRAY)
                {
                    list.add(readValue(parser, nodes, depth + 1));
                }
                return list;

            default:
                final Map<String, Object> map = new HashMap<>();
                while (parser.nextToken() != JsonToken.END_OBJECT)
                {
                    final String key = checked(parser.currentName());
                    parser.nextToken();
                    Bodies.put(map, key, readValue(parser, nodes, depth + 1));
                }
                return map;
        }
    }

    /** Rejects half of a surrogate pair, which Jackson accepts in escapes. */
    private static String checked(final String text) throws MalformedException
    {
        for (int i = 0; i < text.length(); i++)
        {
            final char unit = text.charAt(i);
            if (Character.isSurrogate(unit))
            {
                if (!Character.isHighSurrogate(unit) || i + 1 == text.length() ||
                    !Character.isLowSurrogate(text.charAt(i + 1)))
                {
                    throw new MalformedException("half of a surrogate pair");
                }
                i++;
            }
        }
        return text;
    }
}
