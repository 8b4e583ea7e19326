package crosslanguage;

import crosslanguage.Contract.FailureException;
import crosslanguage.Contract.Kind;
import crosslanguage.Contract.MalformedException;
import crosslanguage.codecs.CallbackRequestEncoder;
import crosslanguage.codecs.CallbackResponseDecoder;
import crosslanguage.codecs.MessageHeaderDecoder;
import crosslanguage.codecs.MessageHeaderEncoder;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.RequestDecoder;
import crosslanguage.codecs.ResponseEncoder;
import crosslanguage.codecs.Status;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

/** A connected caller. */
final class Session
{
    private static final long NO_CORRELATION_ID = -1;
    /** Most bytes that wait for the caller. */
    static final int QUEUE_LIMIT = 16 << 20;

    private final long image;
    /** Null before {@link #open}, and after the server has closed the session. Requests are ignored. */
    private ExclusivePublication responses;
    private Objects objects = new Objects();
    /** Calls that await an answer to a callback, by correlation id. */
    private final Map<Long, OpenCall> openCalls = new HashMap<>();
    private final long clientTimeoutNs;
    private final long callbackTimeoutNs;
    /** Messages that could not be sent yet. */
    private final ArrayDeque<UnsafeBuffer> queue = new ArrayDeque<>();
    private int queuedBytes;
    /** Since when the first message of the queue waits. */
    private long waitingSince;

    private final Bodies bodies = new Bodies();
    private final ExpandableArrayBuffer buffer = new ExpandableArrayBuffer();
    private final MessageHeaderDecoder headerDecoder = new MessageHeaderDecoder();
    private final RequestDecoder requestDecoder = new RequestDecoder();
    private final CallbackResponseDecoder callbackResponseDecoder = new CallbackResponseDecoder();
    private final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private final ResponseEncoder responseEncoder = new ResponseEncoder();
    private final CallbackRequestEncoder callbackRequestEncoder = new CallbackRequestEncoder();

    /** A call of {@link Operation#CALLBACK}. */
    private static final class OpenCall
    {
        final long last;
        /** The argument of the callback that awaits its answer. */
        long current = 1;
        long sum;
        long deadline;

        OpenCall(final long last)
        {
            this.last = last;
        }
    }

    Session(final long image, final long clientTimeoutNs, final long callbackTimeoutNs)
    {
        this.image = image;
        this.clientTimeoutNs = clientTimeoutNs;
        this.callbackTimeoutNs = callbackTimeoutNs;
    }

    void open(final ExclusivePublication responses)
    {
        this.responses = responses;
    }

    long image()
    {
        return image;
    }

    /** Handles a message of the caller. The buffer ends with the message. */
    void receive(final DirectBuffer message)
    {
        if (responses == null)
        {
            return;
        }
        try
        {
            final int body = Bodies.readEnvelope(message, headerDecoder);
            switch (headerDecoder.templateId())
            {
                case RequestDecoder.TEMPLATE_ID:
                    requestDecoder.wrapAndApplyHeader(message, 0, headerDecoder);
                    request(message, body);
                    break;

                case CallbackResponseDecoder.TEMPLATE_ID:
                    callbackResponseDecoder.wrapAndApplyHeader(message, 0, headerDecoder);
                    callbackResponse(message, body);
                    break;

                default:
                    throw new MalformedException("a caller sends no template " + headerDecoder.templateId());
            }
        }
        catch (final MalformedException ex)
        {
            fail(NO_CORRELATION_ID, Status.MALFORMED_MESSAGE, ex.getMessage());
        }
    }

    private void request(final DirectBuffer message, final int body)
    {
        final long id = requestDecoder.correlationId();
        final short number = requestDecoder.operationRaw();
        if (number < Operation.PING.value() || number > Operation.TRANSFORM_ALL.value())
        {
            fail(id, Status.UNKNOWN_OPERATION, "no operation " + number);
            return;
        }
        final Operation operation = Operation.get(number);
        try
        {
            final Object argument = bodies.read(Contract.argument(operation), message, body);
            if (operation == Operation.CALLBACK)
            {
                open(id, (Long)argument);
            }
            else
            {
                respond(id, Contract.result(operation), objects.execute(operation, argument));
            }
        }
        catch (final MalformedException ex)
        {
            fail(id, Status.MALFORMED_BODY, ex.getMessage());
        }
        catch (final FailureException ex)
        {
            fail(id, ex.status, ex.getMessage());
        }
    }

    /** Calls the caller back for the first time. */
    private void open(final long id, final long count) throws FailureException
    {
        if (count < 0 || count > Contract.SMALL_ARRAY_LIMIT)
        {
            throw Objects.invalid(count + " callbacks: 0 to " + Contract.SMALL_ARRAY_LIMIT);
        }
        if (openCalls.containsKey(id))
        {
            throw Objects.invalid("call " + id + " is open");
        }
        if (count == 0)
        {
            respond(id, Kind.INTEGER, 0L);
            return;
        }
        if (openCalls.size() == Contract.OPEN_CALL_LIMIT)
        {
            throw new FailureException(Status.LIMIT_REACHED, Contract.OPEN_CALL_LIMIT + " open calls");
        }
        callBack(id, new OpenCall(count));
    }

    private void callBack(final long id, final OpenCall call)
    {
        call.deadline = System.nanoTime() + callbackTimeoutNs;
        openCalls.put(id, call);
        callbackRequestEncoder.wrapAndApplyHeader(buffer, 0, headerEncoder)
            .correlationId(id);
        try
        {
            send(bodies.write(Kind.INTEGER, call.current, buffer, Bodies.ENVELOPE_LENGTH));
        }
        catch (final MalformedException ex)
        {
            throw new IllegalStateException(ex);
        }
    }

    private void callbackResponse(final DirectBuffer message, final int body)
    {
        final long id = callbackResponseDecoder.correlationId();
        final OpenCall call = openCalls.remove(id);
        if (call == null)
        {
            fail(id, Status.UNKNOWN_CALL, "call " + id + " is not open");
            return;
        }
        try
        {
            if (callbackResponseDecoder.statusRaw() != Status.OK.value())
            {
                final String text = (String)bodies.read(Kind.TEXT, message, body);
                throw new FailureException(Status.CALLBACK_FAILED, text);
            }
            call.sum = Objects.add(call.sum, (Long)bodies.read(Kind.INTEGER, message, body));
            if (call.current < call.last)
            {
                call.current++;
                callBack(id, call);
            }
            else
            {
                respond(id, Kind.INTEGER, call.sum);
            }
        }
        catch (final MalformedException ex)
        {
            fail(id, Status.MALFORMED_BODY, ex.getMessage());
        }
        catch (final FailureException ex)
        {
            fail(id, ex.status, ex.getMessage());
        }
    }

    private void fail(final long id, final Status status, final String text)
    {
        answer(id, status, Kind.TEXT, text);
    }

    private void respond(final long id, final Kind kind, final Object result)
    {
        answer(id, Status.OK, kind, result);
    }

    private void answer(
        final long id, final Status status, final Kind kind, final Object body)
    {
        if (responses == null)
        {
            return;
        }
        responseEncoder.wrapAndApplyHeader(buffer, 0, headerEncoder)
            .correlationId(id).status(status);
        try
        {
            final int length = bodies.write(kind, body, buffer, Bodies.ENVELOPE_LENGTH);
            if (length > responses.maxMessageLength())
            {
                throw new MalformedException(length + " bytes: at most " + responses.maxMessageLength());
            }
            send(length);
        }
        catch (final MalformedException ex)
        {
            fail(id, Status.RESPONSE_TOO_LONG, ex.getMessage());
        }
    }

    private void send(final int length)
    {
        if (queue.isEmpty())
        {
            final long position = responses.offer(buffer, 0, length);
            if (position > 0)
            {
                return;
            }
            if (isFinal(position))
            {
                close(Publication.errorString(position));
                return;
            }
            waitingSince = System.nanoTime();
        }
        final byte[] bytes = new byte[length];
        buffer.getBytes(0, bytes);
        queue.add(new UnsafeBuffer(bytes));
        queuedBytes += length;
        if (queuedBytes > QUEUE_LIMIT)
        {
            close("more than " + QUEUE_LIMIT + " bytes wait for its caller");
        }
    }

    /** Sends messages that had to wait. Returns how many. */
    int sendQueue()
    {
        int workCount = 0;
        while (!queue.isEmpty())
        {
            final UnsafeBuffer message = queue.peek();
            final long position = responses.offer(message, 0, message.capacity());
            if (position > 0)
            {
                queue.remove();
                queuedBytes -= message.capacity();
                waitingSince = System.nanoTime();
                workCount++;
            }
            else
            {
                if (isFinal(position))
                {
                    close(Publication.errorString(position));
                }
                break;
            }
        }
        return workCount;
    }

    private static boolean isFinal(final long position)
    {
        return position == Publication.CLOSED || position == Publication.MAX_POSITION_EXCEEDED;
    }

    void checkDeadlines(final long now)
    {
        if (!queue.isEmpty() && now - waitingSince > clientTimeoutNs)
        {
            close("its caller has read nothing for " + clientTimeoutNs / 1_000_000 + " ms");
        }
        for (final Map.Entry<Long, OpenCall> entry : new ArrayList<>(openCalls.entrySet()))
        {
            if (now - entry.getValue().deadline > 0)
            {
                openCalls.remove(entry.getKey());
                fail(entry.getKey(), Status.CALLBACK_FAILED,
                    "no answer to a callback within " + callbackTimeoutNs / 1_000_000 + " ms");
            }
        }
    }

    /** Closes the response channel, which tells the caller that the session is over. */
    void close(final String reason)
    {
        System.err.println("session " + image + " closed: " + reason);
        release();
    }

    void release()
    {
        if (responses != null)
        {
            responses.close();
            responses = null;
        }
        queue.clear();
        queuedBytes = 0;
        openCalls.clear();
        objects = new Objects();
    }
}
