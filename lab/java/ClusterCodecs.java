import io.aeron.cluster.codecs.MessageHeaderDecoder;
import io.aeron.cluster.codecs.MessageHeaderEncoder;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Encodes and decodes cluster messages with Aeron's own codecs, for the tests of rusteron-cluster.
 * <p>
 * A line of input is {@code TEMPLATE fields data encoded}: numbers joined by commas, data as hex joined by commas, and
 * the whole message as hex. A dash stands for nothing. The line of output is {@code encoded fields data}: the message
 * with these values by Aeron's encoder, and the values that Aeron's decoder reads from the given message.
 * <p>
 * What fields and data a codec has, and their order, is found by its methods: releases of Aeron differ in that.
 */
public class ClusterCodecs
{
    private static final String PACKAGE = "io.aeron.cluster.codecs.";
    private static final String[] MESSAGES = {
        "SessionMessageHeader", "SessionEvent", "SessionConnectRequest", "SessionCloseRequest", "SessionKeepAlive",
        "NewLeaderEvent", "Challenge", "ChallengeResponse", "AdminRequest", "AdminResponse", "TimerEvent",
        "SessionOpenEvent", "SessionCloseEvent", "ClusterActionRequest", "NewLeadershipTermEvent", "CloseSession",
        "ScheduleTimer", "CancelTimer", "ServiceAck", "JoinLog", "ServiceTerminationPosition", "SnapshotMarker",
        "ClientSession", "RequestServiceAck" };
    private static final HexFormat HEX = HexFormat.of();

    public static void main(final String[] args) throws IOException, ReflectiveOperationException
    {
        final Map<Integer, String> names = new HashMap<>();
        for (final String name : MESSAGES)
        {
            names.put(Class.forName(PACKAGE + name + "Decoder").getField("TEMPLATE_ID").getInt(null), name);
        }
        final BufferedReader input = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        String line;
        while ((line = input.readLine()) != null)
        {
            final String[] parts = line.split(" ");
            final String name = names.get(Integer.parseInt(parts[0]));
            System.out.println(encode(name, list(parts[1]), list(parts[2])) + " " + decode(name, parts[3]));
        }
    }

    private static String encode(final String name, final List<String> fields, final List<String> data)
        throws ReflectiveOperationException
    {
        final MutableDirectBuffer buffer = new UnsafeBuffer(new byte[65536]);
        final Object encoder = Class.forName(PACKAGE + name + "Encoder").getConstructor().newInstance();
        encoder.getClass().getMethod("wrapAndApplyHeader", MutableDirectBuffer.class, int.class, MessageHeaderEncoder.class)
            .invoke(encoder, buffer, 0, new MessageHeaderEncoder());
        int next = 0;
        for (final String field : inOrder(encoder, "EncodingOffset"))
        {
            final Method setter = Arrays.stream(encoder.getClass().getMethods())
                .filter((method) -> method.getName().equals(field) && method.getParameterCount() == 1)
                .findFirst().orElseThrow();
            final Class<?> type = setter.getParameterTypes()[0];
            final long value = Long.parseLong(fields.get(next++));
            setter.invoke(encoder, type == long.class ? (Object)value : type == int.class ? (Object)(int)value :
                type.getMethod("get", int.class).invoke(null, (int)value));
        }
        next = 0;
        for (final String field : inOrder(encoder, "HeaderLength"))
        {
            final byte[] bytes = HEX.parseHex(data.get(next++));
            encoder.getClass().getMethod("put" + capitalized(field), byte[].class, int.class, int.class)
                .invoke(encoder, bytes, 0, bytes.length);
        }
        final int length = (int)encoder.getClass().getMethod("encodedLength").invoke(encoder);
        final byte[] encoded = new byte[MessageHeaderEncoder.ENCODED_LENGTH + length];
        buffer.getBytes(0, encoded);
        return HEX.formatHex(encoded);
    }

    private static String decode(final String name, final String message) throws ReflectiveOperationException
    {
        final Object decoder = Class.forName(PACKAGE + name + "Decoder").getConstructor().newInstance();
        final Class<?> codec = decoder.getClass();
        codec.getMethod("wrapAndApplyHeader", DirectBuffer.class, int.class, MessageHeaderDecoder.class)
            .invoke(decoder, new UnsafeBuffer(HEX.parseHex(message)), 0, new MessageHeaderDecoder());
        final List<String> fields = new ArrayList<>();
        for (final String field : inOrder(decoder, "EncodingOffset"))
        {
            final Object value = codec.getMethod(field).invoke(decoder);
            fields.add(value instanceof Enum ?
                value.getClass().getMethod("value").invoke(value).toString() : value.toString());
        }
        final List<String> data = new ArrayList<>();
        for (final String field : inOrder(decoder, "HeaderLength"))
        {
            final byte[] bytes = new byte[(int)codec.getMethod(field + "Length").invoke(decoder)];
            codec.getMethod("get" + capitalized(field), byte[].class, int.class, int.class)
                .invoke(decoder, bytes, 0, bytes.length);
            data.add(HEX.formatHex(bytes));
        }
        return joined(fields) + " " + joined(data);
    }

    /** Finds fields by a method that each has: that of the offset, or of the length of data. */
    private static Iterable<String> inOrder(final Object codec, final String suffix) throws ReflectiveOperationException
    {
        final Map<Integer, String> found = new TreeMap<>();
        for (final Method method : codec.getClass().getMethods())
        {
            final String field = method.getName().replace(suffix, "");
            if (method.getName().endsWith(suffix))
            {
                found.put((int)codec.getClass().getMethod(field + "Id").invoke(null), field);
            }
        }
        return found.values();
    }

    private static String capitalized(final String field)
    {
        return Character.toUpperCase(field.charAt(0)) + field.substring(1);
    }

    private static List<String> list(final String text)
    {
        return "-".equals(text) ? List.of() : List.of(text.split(",", -1));
    }

    private static String joined(final List<String> values)
    {
        return values.isEmpty() ? "-" : String.join(",", values);
    }
}
