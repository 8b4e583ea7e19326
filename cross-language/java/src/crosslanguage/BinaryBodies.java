package crosslanguage;

import crosslanguage.codecs.CallObjectDecoder;
import crosslanguage.codecs.CallObjectEncoder;
import crosslanguage.codecs.CreateObjectDecoder;
import crosslanguage.codecs.CreateObjectEncoder;
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
import crosslanguage.codecs.TextDecoder;
import crosslanguage.codecs.TextEncoder;
import crosslanguage.codecs.ValueDecoder;
import crosslanguage.codecs.ValueEncoder;
import crosslanguage.codecs.VoidDecoder;
import crosslanguage.codecs.VoidEncoder;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Bodies through the generated codecs. The codecs trust lengths in a message, so reading checks each length first.
 */
final class BinaryBodies
{
    private static final byte[] NO_BYTES = new byte[0];

    private final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private final IntegerEncoder integerEncoder = new IntegerEncoder();
    private final TextEncoder textEncoder = new TextEncoder();
    private final IntegersEncoder integersEncoder = new IntegersEncoder();
    private final CreateObjectEncoder createObjectEncoder = new CreateObjectEncoder();
    private final CallObjectEncoder callObjectEncoder = new CallObjectEncoder();
    private final ObjectValueEncoder objectValueEncoder = new ObjectValueEncoder();
    private final ValueEncoder valueEncoder = new ValueEncoder();
    private final VoidEncoder voidEncoder = new VoidEncoder();

    private final MessageHeaderDecoder headerDecoder = new MessageHeaderDecoder();
    private final GroupSizeEncodingDecoder groupDecoder = new GroupSizeEncodingDecoder();
    private final IntegerDecoder integerDecoder = new IntegerDecoder();
    private final TextDecoder textDecoder = new TextDecoder();
    private final IntegersDecoder integersDecoder = new IntegersDecoder();
    private final CreateObjectDecoder createObjectDecoder = new CreateObjectDecoder();
    private final CallObjectDecoder callObjectDecoder = new CallObjectDecoder();
    private final ObjectValueDecoder objectValueDecoder = new ObjectValueDecoder();
    private final ValueDecoder valueDecoder = new ValueDecoder();

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
                checkCount(values.length, Contract.LIST_LIMIT);
                integersEncoder.wrapAndApplyHeader(buffer, index, headerEncoder);
                final IntegersEncoder.ValuesEncoder entries = integersEncoder.valuesCount(values.length);
                for (final long value : values)
                {
                    entries.next().value(value);
                }
                return integersEncoder.limit();

            case CREATE_OBJECT:
                final Kind.Pair create = (Kind.Pair)body;
                createObjectEncoder.wrapAndApplyHeader(buffer, index, headerEncoder)
                    .initialValue(create.first()).amount(create.second());
                return createObjectEncoder.limit();

            case CALL_OBJECT:
                final Kind.Pair call = (Kind.Pair)body;
                callObjectEncoder.wrapAndApplyHeader(buffer, index, headerEncoder)
                    .objectId(call.first()).amount(call.second());
                return callObjectEncoder.limit();

            case OBJECT_VALUE:
                final Kind.Pair object = (Kind.Pair)body;
                objectValueEncoder.wrapAndApplyHeader(buffer, index, headerEncoder)
                    .objectId(object.first()).value(object.second());
                return objectValueEncoder.limit();

            default:
                final int count = Bodies.nodeCount(body);
                checkCount(count, Contract.NODE_LIMIT);
                valueEncoder.wrapAndApplyHeader(buffer, index, headerEncoder);
                writeNode(valueEncoder.nodesCount(count), NO_BYTES, body);
                return valueEncoder.limit();
        }
    }

    private static void checkCount(final int count, final int limit) throws MalformedException
    {
        if (count > limit)
        {
            throw new MalformedException(count + " elements: at most " + limit);
        }
    }

    private static void writeNode(final ValueEncoder.NodesEncoder nodes, final byte[] key, final Object value)
        throws MalformedException
    {
        if (key.length > Contract.LIST_LIMIT)
        {
            throw new MalformedException("a key of " + key.length + " bytes: at most " + Contract.LIST_LIMIT);
        }
        NodeKind kind = NodeKind.EMPTY;
        int children = 0;
        long bits = 0;
        byte[] text = NO_BYTES;
        if (value instanceof Boolean)
        {
            kind = NodeKind.BOOLEAN;
            bits = (Boolean)value ? 1 : 0;
        }
        else if (value instanceof Long)
        {
            kind = NodeKind.INTEGER;
            bits = (Long)value;
        }
        else if (value instanceof Double)
        {
            kind = NodeKind.NUMBER;
            bits = Double.doubleToRawLongBits((Double)value);
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

    Object read(final Kind kind, final DirectBuffer buffer, final int index) throws MalformedException
    {
        final int end = buffer.capacity();
        check(index, MessageHeaderDecoder.ENCODED_LENGTH, end);
        headerDecoder.wrap(buffer, index);
        if (headerDecoder.schemaId() != MessageHeaderDecoder.SCHEMA_ID)
        {
            throw new MalformedException("schema " + headerDecoder.schemaId());
        }
        final int template = templateId(kind);
        if (headerDecoder.templateId() != template)
        {
            throw new MalformedException("template " + headerDecoder.templateId() + ", not " + template);
        }
        final int block = index + MessageHeaderDecoder.ENCODED_LENGTH;
        final int blockLength = headerDecoder.blockLength();
        check(block, blockLength, end);
        if (blockLength < leastBlockLength(kind))
        {
            throw new MalformedException("a block of " + blockLength + " bytes");
        }

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
                body = readText(buffer, end);
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
                createObjectDecoder.wrapAndApplyHeader(buffer, index, headerDecoder);
                body = new Kind.Pair(createObjectDecoder.initialValue(), createObjectDecoder.amount());
                limit = createObjectDecoder.limit();
                break;

            case CALL_OBJECT:
                callObjectDecoder.wrapAndApplyHeader(buffer, index, headerDecoder);
                body = new Kind.Pair(callObjectDecoder.objectId(), callObjectDecoder.amount());
                limit = callObjectDecoder.limit();
                break;

            case OBJECT_VALUE:
                objectValueDecoder.wrapAndApplyHeader(buffer, index, headerDecoder);
                body = new Kind.Pair(objectValueDecoder.objectId(), objectValueDecoder.value());
                limit = objectValueDecoder.limit();
                break;

            default:
                valueDecoder.wrapAndApplyHeader(buffer, index, headerDecoder);
                checkGroup(buffer, valueDecoder.limit(), ValueDecoder.NodesDecoder.sbeBlockLength(), end);
                final ValueDecoder.NodesDecoder nodes = valueDecoder.nodes();
                body = readNode(nodes, buffer, end, Contract.DEPTH_LIMIT, null);
                if (nodes.hasNext())
                {
                    throw new MalformedException("nodes after the value");
                }
                limit = valueDecoder.limit();
                break;
        }
        if (limit != end)
        {
            throw new MalformedException((end - limit) + " bytes after the body");
        }
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
        if (depth == 0)
        {
            throw new MalformedException("a value deeper than " + Contract.DEPTH_LIMIT);
        }
        if (!nodes.hasNext())
        {
            throw new MalformedException("a child is missing");
        }
        check(valueDecoder.limit(), nodes.actingBlockLength(), end);
        nodes.next();
        final int kind = nodes.kindRaw();
        final long children = nodes.children();
        final long bits = nodes.bits();
        check(valueDecoder.limit(), ValueDecoder.NodesDecoder.keyHeaderLength(), end);
        final int keyIndex = valueDecoder.limit() + ValueDecoder.NodesDecoder.keyHeaderLength();
        final int keyLength = nodes.keyLength();
        check(keyIndex, keyLength, end);
        final String key = Bodies.utf8(buffer, keyIndex, keyLength);
        nodes.skipKey();
        check(valueDecoder.limit(), ValueDecoder.NodesDecoder.textHeaderLength(), end);
        final int textIndex = valueDecoder.limit() + ValueDecoder.NodesDecoder.textHeaderLength();
        final int textLength = nodes.textLength();
        check(textIndex, textLength, end);
        final String text = Bodies.utf8(buffer, textIndex, textLength);
        nodes.skipText();

        final Object value;
        if (kind == NodeKind.EMPTY.value())
        {
            value = null;
        }
        else if (kind == NodeKind.BOOLEAN.value() && (bits == 0 || bits == 1))
        {
            value = bits == 1;
        }
        else if (kind == NodeKind.INTEGER.value())
        {
            value = bits;
        }
        else if (kind == NodeKind.NUMBER.value() && Double.isFinite(Double.longBitsToDouble(bits)))
        {
            value = Double.longBitsToDouble(bits);
        }
        else if (kind == NodeKind.TEXT.value())
        {
            value = text;
        }
        else if (kind == NodeKind.LIST.value())
        {
            final List<Object> list = new ArrayList<>();
            for (long i = 0; i < children; i++)
            {
                list.add(readNode(nodes, buffer, end, depth - 1, null));
            }
            value = list;
        }
        else if (kind == NodeKind.MAP.value())
        {
            final Map<String, Object> map = new HashMap<>();
            for (long i = 0; i < children; i++)
            {
                readNode(nodes, buffer, end, depth - 1, map);
            }
            value = map;
        }
        else
        {
            throw new MalformedException("a node of kind " + kind + " with bits " + bits);
        }
        if (parent != null)
        {
            Bodies.put(parent, key, value);
        }
        return value;
    }

    private String readText(final DirectBuffer buffer, final int end) throws MalformedException
    {
        check(textDecoder.limit(), TextDecoder.textHeaderLength(), end);
        final int textIndex = textDecoder.limit() + TextDecoder.textHeaderLength();
        final int length = textDecoder.textLength();
        check(textIndex, length, end);
        textDecoder.skipText();
        return Bodies.utf8(buffer, textIndex, length);
    }

    /** Checks the size of a group whose entries have at least a length. */
    private void checkGroup(final DirectBuffer buffer, final int index, final int least, final int end)
        throws MalformedException
    {
        check(index, GroupSizeEncodingDecoder.ENCODED_LENGTH, end);
        groupDecoder.wrap(buffer, index);
        final int entryLength = groupDecoder.blockLength();
        if (entryLength < least)
        {
            throw new MalformedException("entries of " + entryLength + " bytes, not " + least);
        }
        // At most 65,535 squared: an int would overflow.
        final long length = (long)entryLength * groupDecoder.numInGroup();
        if (length > end - index - GroupSizeEncodingDecoder.ENCODED_LENGTH)
        {
            throw new MalformedException(groupDecoder.numInGroup() + " entries of " + entryLength + " bytes");
        }
    }

    /** Checks that a range is within the message. A length of 2^31 or more is negative here. */
    private static void check(final int index, final int length, final int end) throws MalformedException
    {
        if (length < 0 || length > end - index)
        {
            throw new MalformedException((length & 0xFFFF_FFFFL) + " bytes, of which " + (end - index));
        }
    }

    private static int templateId(final Kind kind)
    {
        switch (kind)
        {
            case VOID:
                return VoidDecoder.TEMPLATE_ID;
            case INTEGER:
                return IntegerDecoder.TEMPLATE_ID;
            case TEXT:
                return TextDecoder.TEMPLATE_ID;
            case INTEGERS:
                return IntegersDecoder.TEMPLATE_ID;
            case CREATE_OBJECT:
                return CreateObjectDecoder.TEMPLATE_ID;
            case CALL_OBJECT:
                return CallObjectDecoder.TEMPLATE_ID;
            case OBJECT_VALUE:
                return ObjectValueDecoder.TEMPLATE_ID;
            default:
                return ValueDecoder.TEMPLATE_ID;
        }
    }

    private static int leastBlockLength(final Kind kind)
    {
        switch (kind)
        {
            case INTEGER:
                return IntegerDecoder.BLOCK_LENGTH;
            case CREATE_OBJECT:
            case CALL_OBJECT:
            case OBJECT_VALUE:
                return CallObjectDecoder.BLOCK_LENGTH;
            default:
                return 0;
        }
    }
}
