package crosslanguage;

import crosslanguage.codecs.CallbackRequestDecoder;
import crosslanguage.codecs.CallbackResponseEncoder;
import crosslanguage.codecs.Encoding;
import crosslanguage.codecs.MessageHeaderDecoder;
import crosslanguage.codecs.MessageHeaderEncoder;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.RequestEncoder;
import crosslanguage.codecs.ResponseDecoder;
import crosslanguage.codecs.Status;
import io.aeron.Aeron;
import io.aeron.ErrorCode;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.exceptions.RegistrationException;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** A session with a server, for one thread. After a {@link CallException}, close it and connect anew. */
final class ServiceCaller implements AutoCloseable
{
    /** Answers callbacks. */
    interface CallbackHandler
    {
        long onCallback(long argument) throws FailureException;
    }

    private final Subscription responses;
    private final ExclusivePublication requests;
    private final CallbackHandler callbackHandler;
    private final long timeoutNs;
    private final IdleStrategy idle;
    private final FragmentAssembler assembler = new FragmentAssembler(this::onMessage);
    private long nextCorrelationId = 1;
    /** Whether the server has opened its response channel. */
    private boolean isAnswered;

    private final Bodies bodies = new Bodies();
    private final ExpandableArrayBuffer buffer = new ExpandableArrayBuffer();
    private final UnsafeBuffer message = new UnsafeBuffer(0, 0);
    /** Memory of the message, kept for the next: new memory for each is slow, because no cache has it. */
    private byte[] messageBytes = new byte[0];
    private final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private final MessageHeaderDecoder headerDecoder = new MessageHeaderDecoder();
    private final RequestEncoder requestEncoder = new RequestEncoder();
    private final CallbackResponseEncoder callbackResponseEncoder = new CallbackResponseEncoder();
    private final ResponseDecoder responseDecoder = new ResponseDecoder();
    private final CallbackRequestDecoder callbackRequestDecoder = new CallbackRequestDecoder();

    /** The handler has received a message. Its bytes are a copy outside the log buffer, and may be changed. */
    private boolean hasMessage;

    ServiceCaller(
        final Aeron aeron,
        final String requestChannel,
        final String responseChannel,
        final long timeoutNs,
        final IdleStrategy idle,
        final CallbackHandler callbackHandler)
        throws CallException
    {
        this.timeoutNs = timeoutNs;
        this.idle = idle;
        this.callbackHandler = callbackHandler;
        final long deadline = System.nanoTime() + timeoutNs;
        responses = added(() -> aeron.addSubscription(responseChannel, Contract.RESPONSE_STREAM), deadline);
        final String channel = requestChannel + (requestChannel.indexOf('?') < 0 ? '?' : '|') +
            "response-correlation-id=" + responses.registrationId();
        requests = added(() -> aeron.addExclusivePublication(channel, Contract.REQUEST_STREAM), deadline);
        while (!requests.isConnected())
        {
            if (System.nanoTime() - deadline > 0)
            {
                close();
                throw new CallException(CallException.Reason.NOT_CONNECTED, "no server is connected");
            }
            idle.idle(0);
        }
    }

    /**
     * Adds a publication or subscription. Tries again until the deadline while the driver closes a socket of the address:
     * the last session over UDP may have used the same.
     */
    static <T> T added(final Supplier<T> add, final long deadline)
    {
        while (true)
        {
            try
            {
                return add.get();
            }
            catch (final RegistrationException ex)
            {
                if (ex.errorCode() != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE || System.nanoTime() - deadline >= 0)
                {
                    throw ex;
                }
            }
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** Calls an operation and waits for its result. Kinds of arguments and results: {@link Kind}. */
    Object call(final Operation operation, final Encoding encoding, final Object argument)
        throws CallException, FailureException
    {
        final long deadline = System.nanoTime() + timeoutNs;
        final long correlationId = nextCorrelationId++;
        requestEncoder.wrapAndApplyHeader(buffer, 0, headerEncoder)
            .correlationId(correlationId).operation(operation).encoding(encoding);
        write(Contract.argument(operation), encoding, argument, deadline);
        while (true)
        {
            final int body = await(deadline);
            // Responses to earlier calls, which have timed out, are skipped.
            switch (headerDecoder.templateId())
            {
                case ResponseDecoder.TEMPLATE_ID:
                    responseDecoder.wrapAndApplyHeader(message, 0, headerDecoder);
                    if (responseDecoder.correlationId() == correlationId)
                    {
                        return result(operation, body);
                    }
                    break;

                case CallbackRequestDecoder.TEMPLATE_ID:
                    callbackRequestDecoder.wrapAndApplyHeader(message, 0, headerDecoder);
                    if (callbackRequestDecoder.correlationId() == correlationId)
                    {
                        answerCallback(correlationId, body, deadline);
                    }
                    break;

                default:
                    throw malformed("template " + headerDecoder.templateId());
            }
        }
    }

    /** Sends bytes as they are. Returns the next response, whose body begins at an index of its message. */
    int callRaw(final byte[] bytes) throws CallException
    {
        final long deadline = System.nanoTime() + timeoutNs;
        offer(new UnsafeBuffer(bytes), bytes.length, deadline);
        final int body = await(deadline);
        responseDecoder.wrapAndApplyHeader(message, 0, headerDecoder);
        return body;
    }

    /** The response of {@link #callRaw}. */
    ResponseDecoder response()
    {
        return responseDecoder;
    }

    /** The message of {@link #callRaw}. */
    DirectBuffer message()
    {
        return message;
    }

    @Override
    public void close()
    {
        requests.close();
        responses.close();
    }

    private Object result(final Operation operation, final int body) throws CallException, FailureException
    {
        final short number = responseDecoder.statusRaw();
        if (number > Status.LIMIT_REACHED.value())
        {
            throw malformed("status " + number);
        }
        final Status status = Status.get(number);
        final Encoding encoding = encoding(responseDecoder.encodingRaw());
        try
        {
            if (status != Status.OK)
            {
                throw new FailureException(status, (String)bodies.read(Kind.TEXT, encoding, message, body));
            }
            return bodies.read(Contract.result(operation), encoding, message, body);
        }
        catch (final MalformedException ex)
        {
            throw malformed(ex.getMessage());
        }
    }

    private void answerCallback(final long correlationId, final int body, final long deadline) throws CallException
    {
        final Encoding encoding = encoding(callbackRequestDecoder.encodingRaw());
        Status status = Status.OK;
        Kind kind = Kind.INTEGER;
        Object answer;
        try
        {
            answer = callbackHandler.onCallback((Long)bodies.read(Kind.INTEGER, encoding, message, body));
        }
        catch (final FailureException | MalformedException ex)
        {
            status = Status.CALLBACK_FAILED;
            kind = Kind.TEXT;
            answer = ex.getMessage();
        }
        callbackResponseEncoder.wrapAndApplyHeader(buffer, 0, headerEncoder)
            .correlationId(correlationId).status(status).encoding(encoding);
        write(kind, encoding, answer, deadline);
    }

    private static Encoding encoding(final short number) throws CallException
    {
        final Encoding encoding = Bodies.encoding(number);
        if (encoding == null)
        {
            throw malformed("encoding " + number);
        }
        return encoding;
    }

    private static CallException malformed(final String text)
    {
        return new CallException(CallException.Reason.MALFORMED_RESPONSE, text);
    }

    private void write(final Kind kind, final Encoding encoding, final Object body, final long deadline)
        throws CallException
    {
        try
        {
            offer(buffer, bodies.write(kind, encoding, body, buffer, Envelopes.LENGTH), deadline);
        }
        catch (final MalformedException ex)
        {
            throw new CallException(CallException.Reason.INVALID_REQUEST, ex.getMessage());
        }
    }

    private void offer(final DirectBuffer request, final int length, final long deadline) throws CallException
    {
        if (length > requests.maxMessageLength())
        {
            throw new CallException(
                CallException.Reason.INVALID_REQUEST, length + " bytes: at most " + requests.maxMessageLength());
        }
        long position;
        while ((position = requests.offer(request, 0, length)) < 0)
        {
            if (position == Publication.NOT_CONNECTED)
            {
                throw new CallException(CallException.Reason.NOT_CONNECTED, "no server is connected");
            }
            if (position == Publication.CLOSED || position == Publication.MAX_POSITION_EXCEEDED)
            {
                throw new CallException(CallException.Reason.CLOSED, Publication.errorString(position));
            }
            if (System.nanoTime() - deadline > 0)
            {
                throw new CallException(
                    CallException.Reason.BACK_PRESSURED, "request not accepted within " + timeoutNs + " ns");
            }
            idle.idle(0);
        }
    }

    /** Waits for a message and wraps its header. Returns the index of its body. */
    private int await(final long deadline) throws CallException
    {
        hasMessage = false;
        while (true)
        {
            final int fragments = responses.poll(assembler, 1);
            if (hasMessage)
            {
                try
                {
                    return Envelopes.read(message, headerDecoder);
                }
                catch (final MalformedException ex)
                {
                    throw malformed(ex.getMessage());
                }
            }
            if (fragments > 0)
            {
                continue;
            }
            final boolean hasResponses = responses.isConnected();
            isAnswered |= hasResponses;
            if (!requests.isConnected() || isAnswered && !hasResponses)
            {
                throw new CallException(CallException.Reason.NOT_CONNECTED, "no server is connected");
            }
            if (System.nanoTime() - deadline > 0)
            {
                throw new CallException(CallException.Reason.TIMED_OUT, "no response within " + timeoutNs + " ns");
            }
            idle.idle(0);
        }
    }

    private void onMessage(final DirectBuffer buffer, final int offset, final int length, final Header header)
    {
        hasMessage = true;
        if (buffer.byteArray() != null)
        {
            // An assembled message, whose memory the assembler keeps until the next poll.
            message.wrap(buffer, offset, length);
            return;
        }
        if (messageBytes.length < length)
        {
            messageBytes = new byte[length];
        }
        buffer.getBytes(offset, messageBytes, 0, length);
        message.wrap(messageBytes, 0, length);
    }
}
