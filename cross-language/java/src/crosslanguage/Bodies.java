package crosslanguage;

import crosslanguage.codecs.Encoding;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** Writes and reads bodies in both encodings. */
final class Bodies
{
    private static final char REPLACEMENT = '\uFFFD';

    private final BinaryBodies binary = new BinaryBodies();
    private final JsonBodies json = new JsonBodies();

    /** Writes a body. Returns the index after it. */
    int write(
        final Kind kind, final Encoding encoding, final Object body, final MutableDirectBuffer buffer, final int index)
        throws MalformedException
    {
        return encoding == Encoding.JSON ?
            json.write(kind, body, buffer, index) : binary.write(kind, body, buffer, index);
    }

    /** Reads a body, which ends where the buffer does. */
    Object read(final Kind kind, final Encoding encoding, final DirectBuffer buffer, final int index)
        throws MalformedException
    {
        return encoding == Encoding.JSON ? json.read(kind, buffer, index) : binary.read(kind, buffer, index);
    }

    /** Returns the encoding of a number in a message, or null. */
    static Encoding encoding(final short number)
    {
        return number == Encoding.BINARY.value() ? Encoding.BINARY :
            number == Encoding.JSON.value() ? Encoding.JSON : null;
    }

    /** Decodes UTF-8 without replacing what is malformed. */
    static String utf8(final DirectBuffer buffer, final int index, final int length) throws MalformedException
    {
        byte[] bytes = buffer.byteArray();
        int offset = buffer.wrapAdjustment() + index;
        if (bytes == null)
        {
            bytes = new byte[length];
            buffer.getBytes(index, bytes);
            offset = 0;
        }
        // Much faster than a decoder, but replaces malformed bytes by a character that a text may also have.
        final String text = new String(bytes, offset, length, StandardCharsets.UTF_8);
        if (text.indexOf(REPLACEMENT) < 0)
        {
            return text;
        }
        try
        {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes, offset, length)).toString();
        }
        catch (final CharacterCodingException ex)
        {
            throw new MalformedException("not UTF-8: " + ex.getMessage());
        }
    }

    /** Adds to a map with unique keys. */
    static void put(final Map<String, Object> map, final String key, final Object value) throws MalformedException
    {
        if (key.indexOf('\0') >= 0)
        {
            throw new MalformedException("U+0000 in a key");
        }
        if (map.containsKey(key))
        {
            throw new MalformedException("a key occurs twice");
        }
        map.put(key, value);
    }

    /** Returns the number of values in a value, itself included. */
    static int nodeCount(final Object value)
    {
        int count = 1;
        if (value instanceof List)
        {
            for (final Object member : (List<?>)value)
            {
                count += nodeCount(member);
            }
        }
        else if (value instanceof Map)
        {
            for (final Object member : ((Map<?, ?>)value).values())
            {
                count += nodeCount(member);
            }
        }
        return count;
    }
}
