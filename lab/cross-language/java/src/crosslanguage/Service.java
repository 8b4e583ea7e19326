package crosslanguage;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import crosslanguage.Contract.FailureException;
import crosslanguage.protocol.CallObject;
import crosslanguage.protocol.CreateObject;
import crosslanguage.protocol.Failure;
import crosslanguage.protocol.Integers;
import crosslanguage.protocol.Members;
import crosslanguage.protocol.ObjectValue;
import crosslanguage.protocol.Request;
import crosslanguage.protocol.Response;
import crosslanguage.protocol.Status;
import crosslanguage.protocol.Value;
import crosslanguage.protocol.Values;
import crosslanguage.protocol.Void;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** The service without a transport, for one session: each request gives one response. */
final class Service
{
    /** The value of object 1, of object 2, … */
    private final List<Long> objects = new ArrayList<>();
    /** Calls that await an answer to a callback, by correlation id. */
    private final Map<Long, OpenCall> openCalls = new HashMap<>();
    private final long callbackTimeoutNs;

    /** A call of {@code CALLBACK}. */
    private static final class OpenCall
    {
        final long last;
        /** The argument of the callback that awaits its answer. */
        long current;
        long sum;
        long deadline;

        OpenCall(final long last)
        {
            this.last = last;
        }
    }

    Service(final long callbackTimeoutNs)
    {
        this.callbackTimeoutNs = callbackTimeoutNs;
    }

    /** Decodes and executes a request. */
    Response receive(final CodedInputStream message)
    {
        final Request request;
        try
        {
            request = Request.parseFrom(message);
        }
        catch (final IOException ex)
        {
            // No call has this correlation id.
            return failed(0, Status.MALFORMED_MESSAGE, ex.getMessage());
        }
        return respond(request);
    }

    /** Executes a request. A failure has changed no object. */
    Response respond(final Request request)
    {
        final Response.Builder response = Response.newBuilder().setCorrelationId(request.getCorrelationId());
        try
        {
            execute(request, response);
            return response.build();
        }
        catch (final FailureException ex)
        {
            return failed(request.getCorrelationId(), ex.status, ex.getMessage());
        }
    }

    static Response failed(final long correlationId, final Status status, final String text)
    {
        final Failure failure = Failure.newBuilder().setStatus(status).setText(text).build();
        return Response.newBuilder().setCorrelationId(correlationId).setFailure(failure).build();
    }

    private void execute(final Request request, final Response.Builder response) throws FailureException
    {
        switch (request.getOperationCase())
        {
            case PING -> response.setPing(Void.getDefaultInstance());
            case SUCCESSOR -> response.setSuccessor(add(request.getSuccessor(), 1));
            // The bytes of a text are encoded faster than its characters.
            case REVERSE -> response.setReverseBytes(ByteString.copyFromUtf8(reversed(request.getReverse())));
            case RUNNING_SUMS -> response.setRunningSums(runningSums(request.getRunningSums()));
            case CREATE -> response.setCreate(create(request.getCreate()));
            case CALL -> response.setCall(call(request.getCall()));
            case CALLBACK -> callback(request, response);
            case TRANSFORM -> response.setTransform(transformed(request.getTransform()));
            case TOTAL -> response.setTotal(total(request.getTotal()));
            case SQUARES -> response.setSquares(squares(request.getSquares()));
            case TRANSFORM_ALL -> response.setTransformAll(transformed(request.getTransformAll()));
            case CALLBACK_RESULT, CALLBACK_ERROR -> callbackAnswer(request, response);
            case OPERATION_NOT_SET ->
                throw new FailureException(Status.UNKNOWN_OPERATION, "a request of no known operation");
        }
    }

    private void callback(final Request request, final Response.Builder response) throws FailureException
    {
        final long id = request.getCorrelationId();
        final long count = request.getCallback();
        check(count >= 0 && count <= Contract.SMALL_ARRAY_LIMIT, count + " callbacks");
        check(!openCalls.containsKey(id), "call " + id + " is open");
        if (count == 0)
        {
            response.setCallback(0);
            return;
        }
        if (openCalls.size() == Contract.OPEN_CALL_LIMIT)
        {
            throw new FailureException(Status.LIMIT_REACHED, Contract.OPEN_CALL_LIMIT + " open calls");
        }
        callBack(id, new OpenCall(count), response);
    }

    private void callBack(final long id, final OpenCall call, final Response.Builder response)
    {
        call.current++;
        call.deadline = System.nanoTime() + callbackTimeoutNs;
        openCalls.put(id, call);
        response.setCallbackArgument(call.current);
    }

    private void callbackAnswer(final Request request, final Response.Builder response) throws FailureException
    {
        final long id = request.getCorrelationId();
        final OpenCall call = openCalls.remove(id);
        if (call == null)
        {
            throw new FailureException(Status.UNKNOWN_CALL, "call " + id + " is not open");
        }
        if (request.hasCallbackError())
        {
            throw new FailureException(Status.CALLBACK_FAILED, request.getCallbackError());
        }
        call.sum = add(call.sum, request.getCallbackResult());
        if (call.current < call.last)
        {
            callBack(id, call, response);
        }
        else
        {
            response.setCallback(call.sum);
        }
    }

    /** Ends calls whose callback has not been answered in time. Returns their responses. */
    List<Response> expire(final long now)
    {
        final List<Response> responses = new ArrayList<>();
        final String text = "no answer to a callback within " + callbackTimeoutNs / 1_000_000 + " ms";
        for (final Iterator<Map.Entry<Long, OpenCall>> calls = openCalls.entrySet().iterator(); calls.hasNext();)
        {
            final Map.Entry<Long, OpenCall> call = calls.next();
            if (now - call.getValue().deadline > 0)
            {
                calls.remove();
                responses.add(failed(call.getKey(), Status.CALLBACK_FAILED, text));
            }
        }
        return responses;
    }

    private static void check(final boolean isRight, final String text) throws FailureException
    {
        if (!isRight)
        {
            throw new FailureException(Status.INVALID_ARGUMENT, text);
        }
    }

    private static long add(final long value, final long amount) throws FailureException
    {
        final long sum = value + amount;
        // Overflow: both summands have the sign that the sum lacks.
        check(((value ^ sum) & (amount ^ sum)) >= 0, value + " + " + amount + " is out of range");
        return sum;
    }

    private ObjectValue create(final CreateObject argument) throws FailureException
    {
        if (objects.size() == Contract.OBJECT_LIMIT)
        {
            throw new FailureException(Status.LIMIT_REACHED, Contract.OBJECT_LIMIT + " objects");
        }
        final long value = add(argument.getInitialValue(), argument.getAmount());
        objects.add(value);
        return ObjectValue.newBuilder().setObjectId(objects.size()).setValue(value).build();
    }

    private ObjectValue call(final CallObject argument) throws FailureException
    {
        final long id = argument.getObjectId();
        if (id < 1 || id > objects.size())
        {
            throw new FailureException(Status.UNKNOWN_OBJECT, "no object " + id);
        }
        final int index = (int)id - 1;
        final long value = add(objects.get(index), argument.getAmount());
        objects.set(index, value);
        return ObjectValue.newBuilder().setObjectId(id).setValue(value).build();
    }

    private static Integers runningSums(final Integers integers) throws FailureException
    {
        check(integers.getValuesCount() <= Contract.SMALL_ARRAY_LIMIT, integers.getValuesCount() + " integers");
        final Integers.Builder sums = Integers.newBuilder();
        long sum = 0;
        for (int i = 0; i < integers.getValuesCount(); i++)
        {
            sum = add(sum, integers.getValues(i));
            sums.addValues(sum);
        }
        return sums.build();
    }

    private static long total(final Integers integers) throws FailureException
    {
        long total = 0;
        for (int i = 0; i < integers.getValuesCount(); i++)
        {
            total = add(total, integers.getValues(i));
        }
        return total;
    }

    private static Integers squares(final long count) throws FailureException
    {
        check(count >= 0 && count <= Contract.SQUARES_LIMIT, count + " squares");
        final Integers.Builder squares = Integers.newBuilder();
        for (long i = 0; i < count; i++)
        {
            squares.addValues(i * i);
        }
        return squares.build();
    }

    private static String reversed(final String text)
    {
        // Keeps surrogate pairs. A Latin text has a short path in the JDK.
        return new StringBuilder(text).reverse().toString();
    }

    /** Changes each value in a way that shows that its type was understood. */
    private static Value transformed(final Value value) throws FailureException
    {
        final Value.Builder result = Value.newBuilder();
        switch (value.getKindCase())
        {
            case NULL -> result.setNull(Void.getDefaultInstance());
            case BOOLEAN -> result.setBoolean(!value.getBoolean());
            case INTEGER ->
            {
                check(value.getInteger() != Long.MIN_VALUE, "-(" + value.getInteger() + ") is out of range");
                result.setInteger(-value.getInteger());
            }
            case NUMBER -> result.setNumber(value.getNumber() / 2);
            case TEXT -> result.setText(reversed(value.getText()));
            case LIST -> result.setList(transformed(value.getList()));
            case MAP ->
            {
                final Members.Builder members = Members.newBuilder();
                for (final Map.Entry<String, Value> member : value.getMap().getMembersMap().entrySet())
                {
                    check(member.getKey().indexOf('\0') < 0, "U+0000 in a key");
                    members.putMembers(member.getKey(), transformed(member.getValue()));
                }
                result.setMap(members);
            }
            case KIND_NOT_SET -> check(false, "a value of no known kind");
        }
        return result.build();
    }

    private static Values transformed(final Values values) throws FailureException
    {
        final Values.Builder result = Values.newBuilder();
        for (int i = values.getValuesCount() - 1; i >= 0; i--)
        {
            result.addValues(transformed(values.getValues(i)));
        }
        return result.build();
    }
}
