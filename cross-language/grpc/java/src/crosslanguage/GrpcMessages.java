package crosslanguage;

import com.google.protobuf.Message;
import crosslanguage.protocol.CallObject;
import crosslanguage.protocol.CreateObject;
import crosslanguage.protocol.Integer;
import crosslanguage.protocol.Integers;
import crosslanguage.protocol.ObjectValue;
import crosslanguage.protocol.Text;
import crosslanguage.protocol.Value;
import crosslanguage.protocol.Void;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Conversions between bodies, of the types that {@link Kind} says, and the messages of service.proto. */
final class GrpcMessages
{
    /** Of the flow control of HTTP/2, in bytes: equal in all languages. */
    static final int WINDOW_LENGTH = 1 << 20;

    private GrpcMessages()
    {
    }

    static Message message(final Kind kind, final Object body)
    {
        switch (kind)
        {
            case VOID:
                return Void.getDefaultInstance();

            case INTEGER:
                return Integer.newBuilder().setValue((Long)body).build();

            case TEXT:
                return Text.newBuilder().setValue((String)body).build();

            case INTEGERS:
                final Integers.Builder integers = Integers.newBuilder();
                for (final long value : (long[])body)
                {
                    integers.addValues(value);
                }
                return integers.build();

            case CREATE_OBJECT:
                final Kind.Pair create = (Kind.Pair)body;
                return CreateObject.newBuilder().setInitialValue(create.first()).setAmount(create.second()).build();

            case CALL_OBJECT:
                final Kind.Pair call = (Kind.Pair)body;
                return CallObject.newBuilder().setObjectId(call.first()).setAmount(call.second()).build();

            case OBJECT_VALUE:
                final Kind.Pair value = (Kind.Pair)body;
                return ObjectValue.newBuilder().setObjectId(value.first()).setValue(value.second()).build();

            default:
                return value("", body);
        }
    }

    static Object body(final Message message) throws MalformedException
    {
        if (message instanceof Void)
        {
            return null;
        }
        if (message instanceof Integer)
        {
            return ((Integer)message).getValue();
        }
        if (message instanceof Text)
        {
            return ((Text)message).getValue();
        }
        if (message instanceof Integers)
        {
            final Integers integers = (Integers)message;
            final long[] values = new long[integers.getValuesCount()];
            for (int i = 0; i < values.length; i++)
            {
                values[i] = integers.getValues(i);
            }
            return values;
        }
        if (message instanceof CreateObject)
        {
            return new Kind.Pair(((CreateObject)message).getInitialValue(), ((CreateObject)message).getAmount());
        }
        if (message instanceof CallObject)
        {
            return new Kind.Pair(((CallObject)message).getObjectId(), ((CallObject)message).getAmount());
        }
        if (message instanceof ObjectValue)
        {
            return new Kind.Pair(((ObjectValue)message).getObjectId(), ((ObjectValue)message).getValue());
        }
        return body((Value)message);
    }

    private static Value value(final String key, final Object body)
    {
        final Value.Builder value = Value.newBuilder().setKey(key);
        if (body == null)
        {
            value.setKind(Value.Kind.NULL);
        }
        else if (body instanceof Boolean)
        {
            value.setKind(Value.Kind.BOOLEAN).setBoolean((Boolean)body);
        }
        else if (body instanceof Long)
        {
            value.setKind(Value.Kind.INTEGER).setInteger((Long)body);
        }
        else if (body instanceof Double)
        {
            value.setKind(Value.Kind.NUMBER).setNumber((Double)body);
        }
        else if (body instanceof String)
        {
            value.setKind(Value.Kind.TEXT).setText((String)body);
        }
        else if (body instanceof List)
        {
            value.setKind(Value.Kind.LIST);
            for (final Object member : (List<?>)body)
            {
                value.addMembers(value("", member));
            }
        }
        else
        {
            value.setKind(Value.Kind.MAP);
            ((Map<?, ?>)body).forEach((name, member) -> value.addMembers(value((String)name, member)));
        }
        return value.build();
    }

    private static Object body(final Value value) throws MalformedException
    {
        switch (value.getKind())
        {
            case NULL:
                return null;

            case BOOLEAN:
                return value.getBoolean();

            case INTEGER:
                return value.getInteger();

            case NUMBER:
                if (!Double.isFinite(value.getNumber()))
                {
                    throw new MalformedException("the number " + value.getNumber());
                }
                return value.getNumber();

            case TEXT:
                return value.getText();

            case LIST:
                final List<Object> list = new ArrayList<>(value.getMembersCount());
                for (final Value member : value.getMembersList())
                {
                    list.add(body(member));
                }
                return list;

            case MAP:
                final Map<String, Object> map = new HashMap<>();
                for (final Value member : value.getMembersList())
                {
                    Bodies.put(map, member.getKey(), body(member));
                }
                return map;

            default:
                throw new MalformedException("kind " + value.getKindValue());
        }
    }
}
