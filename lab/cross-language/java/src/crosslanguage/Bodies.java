package crosslanguage;

import crosslanguage.Contract.Kind;
import crosslanguage.Contract.MalformedException;
import crosslanguage.Contract.Pair;
import crosslanguage.codecs.CallbackResponseDecoder;
import crosslanguage.codecs.GroupSizeEncodingDecoder;
import crosslanguage.codecs.IntegerDecoder;
import crosslanguage.codecs.IntegerEncoder;
import crosslanguage.codecs.IntegersDecoder;
import crosslanguage.codecs.IntegersEncoder;
import crosslanguage.codecs.MessageHeaderDecoder;
import crosslanguage.codecs.MessageHeaderEncoder;
import crosslanguage.codecs.NodeKind;
import crosslanguage.codecs.ObjectValueDecoder;
import crosslanguage.codecs.ObjectValueEncoder;
import crosslanguage.codecs.RequestDecoder;
import crosslanguage.codecs.TextDecoder;
import crosslanguage.codecs.TextEncoder;
import crosslanguage.codecs.ValueDecoder;
import crosslanguage.codecs.ValueEncoder;
import crosslanguage.codecs.VoidDecoder;
import crosslanguage.codecs.VoidEncoder;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Messages through the generated codecs. The codecs trust lengths in a message, so reading checks each length first. */
final class Bodies
{
    private static final byte[] NO_BYTES = new byte[0];
    private static final char REPLACEMENT = '\uFFFD';
    /** Length of message header and block. The body follows. */
    static final int ENVELOPE_LENGTH = MessageHeaderDecoder.ENCODED_LENGTH + RequestDecoder.BLOCK_LENGTH;

    private final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private final IntegerEncoder integerEncoder = new IntegerEncoder();
    private final TextEncoder textEncoder = new TextEncoder();
    private final IntegersEncoder integersEncoder = new IntegersEncoder();
    private final ObjectValueEncoder objectValueEncoder = new ObjectValueEncoder();
    private final ValueEncoder valueEncoder = new ValueEncoder();
    private final VoidEncoder voidEncoder = new VoidEncoder();

    private final MessageHeaderDecoder headerDecoder = new MessageHeaderDecoder();
    private final GroupSizeEncodingDecoder groupDecoder = new GroupSizeEncodingDecoder();
    private final IntegerDecoder integerDecoder = new IntegerDecoder();
    private final TextDecoder textDecoder = new TextDecoder();
    private final IntegersDecoder integersDecoder = new IntegersDecoder();
    private final ObjectValueDecoder objectValueDecoder = new ObjectValueDecoder();
    private final ValueDecoder valueDecoder = new ValueDecoder();

    /** Checks the envelope of a message and wraps its header. Returns the index of the body. */
    static int readEnvelope(final DirectBuffer message, final MessageHeaderDecoder header) throws MalformedException
    {
        if (message.capacity() < MessageHeaderDecoder.ENCODED_LENGTH)
        {
            throw new MalformedException("a message of " + message.capacity() + " bytes");
        }
        header.wrap(message, 0);
        final int template = header.templateId();
        if (header.schemaId() != MessageHeaderDecoder.SCHEMA_ID ||
            template < RequestDecoder.TEMPLATE_ID || template > CallbackResponseDecoder.TEMPLATE_ID)
        {
            throw new MalformedException("template " + template + " of schema " + header.schemaId());
        }
        final int body = MessageHeaderDecoder.ENCODED_LENGTH + header.blockLength();
        if (header.blockLength() < RequestDecoder.BLOCK_LENGTH || body > message.capacity())
        {
            throw new MalformedException(
                "block length " + header.blockLength() + " in a message of " + message.capacity() + " bytes");
        }
        return body;
    }

    /** Writes a body. Returns the index after it. */
    int write(final Kind kind, final Object body, final MutableDirectBuffer buffer, final int index)
        throws MalformedException
    {
        switch (kind)
        {
            case VOID:
                voidEncoder.wrapAndApplyHeader(buffer, index, headerEncoder);
                return voidEncoder.limit();

            case INTEGER:
                integerEncoder.wrapAndApplyHeader(buffer, index, headerEncoder).value((Long)body);
                return integerEncoder.limit();

            case TEXT:
                final byte[] text = ((String)body).getBytes(StandardCharsets.UTF_8);
                textEncoder.wrapAndApplyHeader(buffer, index, headerEncoder).putText(text, 0, text.length);
                return textEncoder.limit();

            case INTEGERS:
                final long[] values = (long[])body;
                check(values.length <= Contract.LIST_LIMIT, "too many integers", values.length);
                integersEncoder.wrapAndApplyHeader(buffer, index, headerEncoder);
                final IntegersEncoder.ValuesEncoder entries = integersEncoder.valuesCount(values.length);
                for (final long value : values)
                {
                    entries.next().value(value);
                }
                return integersEncoder.limit();

            case CREATE_OBJECT:
            case CALL_OBJECT:
            case OBJECT_VALUE:
                // The three kinds have one layout.
                final Pair pair = (Pair)body;
                objectValueEncoder.wrapAndApplyHeader(buffer, index, headerEncoder)
                    .objectId(pair.first()).value(pair.second());
                headerEncoder.templateId(templateId(kind));
                return objectValueEncoder.limit();

            default:
                final int count = nodeCount(body);
                check(count <= Contract.NODE_LIMIT, "too many values", count);
                valueEncoder.wrapAndApplyHeader(buffer, index, headerEncoder);
                writeNode(valueEncoder.nodesCount(count), NO_BYTES, body);
                return valueEncoder.limit();
        }
    }

    private static void writeNode(final ValueEncoder.NodesEncoder nodes, final byte[] key, final Object value)
        throws MalformedException
    {
        check(key.length <= Contract.LIST_LIMIT, "length of a key", key.length);
        NodeKind kind = NodeKind.EMPTY;
        int children = 0;
        long bits = 0;
        byte[] text = NO_BYTES;
        if (value instanceof final Boolean bool)
        {
            kind = NodeKind.BOOLEAN;
            bits = bool ? 1 : 0;
        }
        else if (value instanceof final Long integer)
        {
            kind = NodeKind.INTEGER;
            bits = integer;
        }
        else if (value instanceof final Double number)
        {
            kind = NodeKind.NUMBER;
            bits = Double.doubleToRawLongBits(number);
        }
        else if (value instanceof String)
        {
            kind = NodeKind.TEXT;
            text = ((String)value).getBytes(StandardCharsets.UTF_8);
        }
        else if (value instanceof List)
        {
            kind = NodeKind.LIST;
            children = ((List<?>)value).size();
        }
        else if (value instanceof Map)
        {
            kind = NodeKind.MAP;
            children = ((Map<?, ?>)value).size();
        }
        nodes.next().kind(kind).children(children).bits(bits)
            .putKey(key, 0, key.length).putText(text, 0, text.length);
        if (value instanceof List)
        {
            for (final Object member : (List<?>)value)
            {
                writeNode(nodes, NO_BYTES, member);
            }
        }
        else if (value instanceof Map)
        {
            for (final Map.Entry<?, ?> member : ((Map<?, ?>)value).entrySet())
            {
                writeNode(nodes, ((String)member.getKey()).getBytes(StandardCharsets.UTF_8), member.getValue());
            }
        }
    }

    /** Reads a body, which ends where the buffer does. */
    Object read(final Kind kind, final DirectBuffer buffer, final int index) throws MalformedException
    {
        final int end = buffer.capacity();
        checkRange(index, MessageHeaderDecoder.ENCODED_LENGTH, end);
        headerDecoder.wrap(buffer, index);
        check(headerDecoder.schemaId() == MessageHeaderDecoder.SCHEMA_ID, "schema", headerDecoder.schemaId());
        check(headerDecoder.templateId() == templateId(kind), "template", headerDecoder.templateId());
        final int block = index + MessageHeaderDecoder.ENCODED_LENGTH;
        final int blockLength = headerDecoder.blockLength();
        checkRange(block, blockLength, end);
        check(blockLength >= leastBlockLength(kind), "length of a block", blockLength);

        final Object body;
        final int limit;
        switch (kind)
        {
            case VOID:
                body = null;
                limit = block + blockLength;
                break;

            case INTEGER:
                body = integerDecoder.wrapAndApplyHeader(buffer, index, headerDecoder).value();
                limit = integerDecoder.limit();
                break;

            case TEXT:
                textDecoder.wrapAndApplyHeader(buffer, index, headerDecoder);
                checkRange(textDecoder.limit(), TextDecoder.textHeaderLength(), end);
                final int textIndex = textDecoder.limit() + TextDecoder.textHeaderLength();
                body = readText(buffer, textIndex, textDecoder.textLength());
                textDecoder.skipText();
                limit = textDecoder.limit();
                break;

            case INTEGERS:
                integersDecoder.wrapAndApplyHeader(buffer, index, headerDecoder);
                checkGroup(buffer, integersDecoder.limit(), IntegersDecoder.ValuesDecoder.sbeBlockLength(), end);
                final IntegersDecoder.ValuesDecoder entries = integersDecoder.values();
                final long[] values = new long[entries.count()];
                for (int i = 0; i < values.length; i++)
                {
                    values[i] = entries.next().value();
                }
                body = values;
                limit = integersDecoder.limit();
                break;

            case CREATE_OBJECT:
            case CALL_OBJECT:
            case OBJECT_VALUE:
                objectValueDecoder.wrap(buffer, block, blockLength, headerDecoder.version());
                body = new Pair(objectValueDecoder.objectId(), objectValueDecoder.value());
                limit = objectValueDecoder.limit();
                break;

            default:
                valueDecoder.wrapAndApplyHeader(buffer, index, headerDecoder);
                checkGroup(buffer, valueDecoder.limit(), ValueDecoder.NodesDecoder.sbeBlockLength(), end);
                final ValueDecoder.NodesDecoder nodes = valueDecoder.nodes();
                body = readNode(nodes, buffer, end, Contract.DEPTH_LIMIT, null);
                check(!nodes.hasNext(), "nodes after the value", nodes.count());
                limit = valueDecoder.limit();
                break;
        }
        check(limit == end, "bytes after the body", end - limit);
        return body;
    }

    /** Reads a node with its children. Adds the value to its parent if that is a map. */
    private Object readNode(
        final ValueDecoder.NodesDecoder nodes,
        final DirectBuffer buffer,
        final int end,
        final int depth,
        final Map<String, Object> parent)
        throws MalformedException
    {
        check(depth > 0, "a value deeper than", Contract.DEPTH_LIMIT);
        check(nodes.hasNext(), "nodes are missing, there are", nodes.count());
        checkRange(valueDecoder.limit(), nodes.actingBlockLength(), end);
        nodes.next();
        final short kind = nodes.kindRaw();
        check(kind <= NodeKind.MAP.value(), "the kind of a node", kind);
        final long children = nodes.children();
        final long bits = nodes.bits();
        checkRange(valueDecoder.limit(), ValueDecoder.NodesDecoder.keyHeaderLength(), end);
        final String key = readText(
            buffer, valueDecoder.limit() + ValueDecoder.NodesDecoder.keyHeaderLength(), nodes.keyLength());
        nodes.skipKey();
        checkRange(valueDecoder.limit(), ValueDecoder.NodesDecoder.textHeaderLength(), end);
        final String text = readText(
            buffer, valueDecoder.limit() + ValueDecoder.NodesDecoder.textHeaderLength(), nodes.textLength());
        nodes.skipText();

        final Object value;
        switch (NodeKind.get(kind))
        {
            case EMPTY:
                value = null;
                break;

            case BOOLEAN:
                check(bits == 0 || bits == 1, "the boolean", bits);
                value = bits == 1;
                break;

            case INTEGER:
                value = bits;
                break;

            case NUMBER:
                check(Double.isFinite(Double.longBitsToDouble(bits)), "the bits of a number", bits);
                value = Double.longBitsToDouble(bits);
                break;

            case TEXT:
                value = text;
                break;

            case LIST:
                final List<Object> list = new ArrayList<>();
                for (long i = 0; i < children; i++)
                {
                    list.add(readNode(nodes, buffer, end, depth - 1, null));
                }
                value = list;
                break;

            default:
                final Map<String, Object> map = new HashMap<>();
                for (long i = 0; i < children; i++)
                {
                    readNode(nodes, buffer, end, depth - 1, map);
                }
                value = map;
                break;
        }
        if (parent != null)
        {
            check(key.indexOf('\0') < 0, "U+0000 in a key of length", key.length());
            check(!parent.containsKey(key), "a key that occurs twice, of length", key.length());
            parent.put(key, value);
        }
        return value;
    }

    /** Checks the size of a group whose entries have at least a length. */
    private void checkGroup(final DirectBuffer buffer, final int index, final int least, final int end)
        throws MalformedException
    {
        checkRange(index, GroupSizeEncodingDecoder.ENCODED_LENGTH, end);
        groupDecoder.wrap(buffer, index);
        final int entryLength = groupDecoder.blockLength();
        check(entryLength >= least, "length of an entry", entryLength);
        // At most 65,535 squared: an int would overflow.
        final long length = (long)entryLength * groupDecoder.numInGroup();
        check(length <= end - index - GroupSizeEncodingDecoder.ENCODED_LENGTH, "length of a group", length);
    }

    /** Checks that a range is within the message. A length of 2^31 or more is negative here. */
    private static void checkRange(final int index, final int length, final int end) throws MalformedException
    {
        check(length >= 0 && length <= end - index, "more bytes than there are", length & 0xFFFF_FFFFL);
    }

    /** Decodes UTF-8 without replacing what is malformed. */
    private static String readText(final DirectBuffer buffer, final int index, final int length)
        throws MalformedException
    {
        checkRange(index, length, buffer.capacity());
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

    private static void check(final boolean isRight, final String what, final long value) throws MalformedException
    {
        if (!isRight)
        {
            throw new MalformedException(what + ": " + value);
        }
    }

    private static int templateId(final Kind kind)
    {
        // The kinds are in the order of the schema.
        return VoidDecoder.TEMPLATE_ID + kind.ordinal();
    }

    private static int leastBlockLength(final Kind kind)
    {
        return switch (kind)
        {
            case INTEGER -> IntegerDecoder.BLOCK_LENGTH;
            case CREATE_OBJECT, CALL_OBJECT, OBJECT_VALUE -> ObjectValueDecoder.BLOCK_LENGTH;
            default -> 0;
        };
    }
}
