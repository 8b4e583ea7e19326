package crosslanguage;

import crosslanguage.Contract.CallException;
import crosslanguage.Contract.FailureException;
import crosslanguage.Contract.Kind;
import crosslanguage.Contract.MalformedException;
import crosslanguage.codecs.CallbackRequestDecoder;
import crosslanguage.codecs.CallbackResponseEncoder;
import crosslanguage.codecs.MessageHeaderDecoder;
import crosslanguage.codecs.MessageHeaderEncoder;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.RequestEncoder;
import crosslanguage.codecs.ResponseDecoder;
import crosslanguage.codecs.Status;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;

/** A session with a server, for one thread. After a {@link CallException}, close it and connect anew. */
public final class Caller implements Modes.Connection
{
    private final Transport transport;
    private final long timeoutNs;
    private long nextCorrelationId = 1;

    private final Bodies bodies = new Bodies();
    private final ExpandableArrayBuffer buffer = new ExpandableArrayBuffer();
    private DirectBuffer message;
    private final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private final MessageHeaderDecoder headerDecoder = new MessageHeaderDecoder();
    private final RequestEncoder requestEncoder = new RequestEncoder();
    private final CallbackResponseEncoder callbackResponseEncoder = new CallbackResponseEncoder();
    private final ResponseDecoder responseDecoder = new ResponseDecoder();
    private final CallbackRequestDecoder callbackRequestDecoder = new CallbackRequestDecoder();

    private Caller(final Transport transport, final long timeoutNs)
    {
        this.transport = transport;
        this.timeoutNs = timeoutNs;
    }

    /**
     * Calls the service.
     *
     * @param args see the README.
     */
    public static void main(final String[] args)
    {
        final Options options = new Options(args);
        final String library = options.get("--in-process", null);
        if (library != null)
        {
            InProcessTransport.load(library);
        }
        Modes.run(options, timeoutNs -> new Caller(
            library == null ? new AeronTransport(options, timeoutNs) : new InProcessTransport(), timeoutNs));
    }

    @Override
    public Object call(final Operation operation, final Object argument)
        throws CallException, FailureException
    {
        final long deadline = System.nanoTime() + timeoutNs;
        final long correlationId = nextCorrelationId++;
        requestEncoder.wrapAndApplyHeader(buffer, 0, headerEncoder)
            .correlationId(correlationId).operation(operation);
        write(Contract.argument(operation), argument, deadline);
        while (true)
        {
            message = transport.receive(deadline);
            final int body;
            try
            {
                body = Bodies.readEnvelope(message, headerDecoder);
            }
            catch (final MalformedException ex)
            {
                throw malformed(ex.getMessage());
            }
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

    @Override
    public void close()
    {
        transport.close();
    }

    private Object result(final Operation operation, final int body) throws CallException, FailureException
    {
        final short number = responseDecoder.statusRaw();
        if (number > Status.LIMIT_REACHED.value())
        {
            throw malformed("status " + number);
        }
        final Status status = Status.get(number);
        try
        {
            if (status != Status.OK)
            {
                throw new FailureException(status, (String)bodies.read(Kind.TEXT, message, body));
            }
            return bodies.read(Contract.result(operation), message, body);
        }
        catch (final MalformedException ex)
        {
            throw malformed(ex.getMessage());
        }
    }

    private void answerCallback(final long correlationId, final int body, final long deadline) throws CallException
    {
        Status status = Status.OK;
        Kind kind = Kind.INTEGER;
        Object answer;
        try
        {
            answer = Modes.square((Long)bodies.read(Kind.INTEGER, message, body));
        }
        catch (final FailureException | MalformedException ex)
        {
            status = Status.CALLBACK_FAILED;
            kind = Kind.TEXT;
            answer = ex.getMessage();
        }
        callbackResponseEncoder.wrapAndApplyHeader(buffer, 0, headerEncoder)
            .correlationId(correlationId).status(status);
        write(kind, answer, deadline);
    }

    private static CallException malformed(final String text)
    {
        return new CallException("MALFORMED_RESPONSE", text);
    }

    private void write(final Kind kind, final Object body, final long deadline)
        throws CallException
    {
        try
        {
            transport.send(buffer, bodies.write(kind, body, buffer, Bodies.ENVELOPE_LENGTH), deadline);
        }
        catch (final MalformedException ex)
        {
            throw new CallException("INVALID_REQUEST", ex.getMessage());
        }
    }
}
