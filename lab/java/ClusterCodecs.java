import io.aeron.cluster.codecs.AdminRequestDecoder;
import io.aeron.cluster.codecs.AdminRequestEncoder;
import io.aeron.cluster.codecs.AdminRequestType;
import io.aeron.cluster.codecs.AdminResponseCode;
import io.aeron.cluster.codecs.AdminResponseDecoder;
import io.aeron.cluster.codecs.AdminResponseEncoder;
import io.aeron.cluster.codecs.BooleanType;
import io.aeron.cluster.codecs.CancelTimerDecoder;
import io.aeron.cluster.codecs.CancelTimerEncoder;
import io.aeron.cluster.codecs.ChallengeDecoder;
import io.aeron.cluster.codecs.ChallengeEncoder;
import io.aeron.cluster.codecs.ChallengeResponseDecoder;
import io.aeron.cluster.codecs.ChallengeResponseEncoder;
import io.aeron.cluster.codecs.ClientSessionDecoder;
import io.aeron.cluster.codecs.ClientSessionEncoder;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.codecs.CloseSessionDecoder;
import io.aeron.cluster.codecs.CloseSessionEncoder;
import io.aeron.cluster.codecs.ClusterAction;
import io.aeron.cluster.codecs.ClusterActionRequestDecoder;
import io.aeron.cluster.codecs.ClusterActionRequestEncoder;
import io.aeron.cluster.codecs.ClusterTimeUnit;
import io.aeron.cluster.codecs.EventCode;
import io.aeron.cluster.codecs.JoinLogDecoder;
import io.aeron.cluster.codecs.JoinLogEncoder;
import io.aeron.cluster.codecs.MessageHeaderDecoder;
import io.aeron.cluster.codecs.MessageHeaderEncoder;
import io.aeron.cluster.codecs.NewLeaderEventDecoder;
import io.aeron.cluster.codecs.NewLeaderEventEncoder;
import io.aeron.cluster.codecs.NewLeadershipTermEventDecoder;
import io.aeron.cluster.codecs.NewLeadershipTermEventEncoder;
import io.aeron.cluster.codecs.RequestServiceAckDecoder;
import io.aeron.cluster.codecs.RequestServiceAckEncoder;
import io.aeron.cluster.codecs.ScheduleTimerDecoder;
import io.aeron.cluster.codecs.ScheduleTimerEncoder;
import io.aeron.cluster.codecs.ServiceAckDecoder;
import io.aeron.cluster.codecs.ServiceAckEncoder;
import io.aeron.cluster.codecs.ServiceTerminationPositionDecoder;
import io.aeron.cluster.codecs.ServiceTerminationPositionEncoder;
import io.aeron.cluster.codecs.SessionCloseEventDecoder;
import io.aeron.cluster.codecs.SessionCloseEventEncoder;
import io.aeron.cluster.codecs.SessionCloseRequestDecoder;
import io.aeron.cluster.codecs.SessionCloseRequestEncoder;
import io.aeron.cluster.codecs.SessionConnectRequestDecoder;
import io.aeron.cluster.codecs.SessionConnectRequestEncoder;
import io.aeron.cluster.codecs.SessionEventDecoder;
import io.aeron.cluster.codecs.SessionEventEncoder;
import io.aeron.cluster.codecs.SessionKeepAliveDecoder;
import io.aeron.cluster.codecs.SessionKeepAliveEncoder;
import io.aeron.cluster.codecs.SessionMessageHeaderDecoder;
import io.aeron.cluster.codecs.SessionMessageHeaderEncoder;
import io.aeron.cluster.codecs.SessionOpenEventDecoder;
import io.aeron.cluster.codecs.SessionOpenEventEncoder;
import io.aeron.cluster.codecs.SnapshotMark;
import io.aeron.cluster.codecs.SnapshotMarkerDecoder;
import io.aeron.cluster.codecs.SnapshotMarkerEncoder;
import io.aeron.cluster.codecs.TimerEventDecoder;
import io.aeron.cluster.codecs.TimerEventEncoder;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/**
 * Encodes and decodes cluster messages with Aeron's own codecs, for the tests of rusteron-cluster.
 * <p>
 * A line of input is {@code TEMPLATE fields data encoded}: numbers joined by commas, data as hex joined by commas, and
 * the whole message as hex. A dash stands for nothing. The line of output is {@code encoded fields data}: the message
 * with these values by Aeron's encoder, and the values that Aeron's decoder reads from the given message.
 */
public class ClusterCodecs
{
    private static final HexFormat HEX = HexFormat.of();

    private static final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private static final MessageHeaderDecoder header = new MessageHeaderDecoder();

    private static List<Long> fields;
    private static List<byte[]> data;
    private static int nextField;
    private static int nextData;

    public static void main(final String[] args) throws IOException
    {
        final BufferedReader input = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        String line;
        while ((line = input.readLine()) != null)
        {
            final String[] parts = line.split(" ");
            final int templateId = Integer.parseInt(parts[0]);
            fields = new ArrayList<>();
            for (final String field : list(parts[1]))
            {
                fields.add(Long.parseLong(field));
            }
            data = new ArrayList<>();
            for (final String bytes : list(parts[2]))
            {
                data.add(HEX.parseHex(bytes));
            }
            nextField = 0;
            nextData = 0;
            final MutableDirectBuffer buffer = new UnsafeBuffer(new byte[65536]);
            final int length = MessageHeaderEncoder.ENCODED_LENGTH + encode(templateId, buffer);
            final byte[] encoded = new byte[length];
            buffer.getBytes(0, encoded);

            fields = new ArrayList<>();
            data = new ArrayList<>();
            decode(new UnsafeBuffer(HEX.parseHex(parts[3])));
            final StringBuilder output = new StringBuilder(HEX.formatHex(encoded)).append(' ');
            append(output, fields.stream().map(String::valueOf).toList());
            output.append(' ');
            append(output, data.stream().map(HEX::formatHex).toList());
            System.out.println(output);
        }
    }

    /** The codecs of 1.51 lack the field, so this program does not compile with a call of its methods. */
    private static boolean hasAckRequired()
    {
        return ServiceTerminationPositionDecoder.SCHEMA_VERSION >= 17;
    }

    private static Object call(final Object codec, final String method, final Object... arguments)
    {
        try
        {
            final Class<?>[] types = Arrays.stream(arguments).map(Object::getClass).toArray(Class<?>[]::new);
            return codec.getClass().getMethod(method, types).invoke(codec, arguments);
        }
        catch (final ReflectiveOperationException ex)
        {
            throw new IllegalStateException(ex);
        }
    }

    private static String[] list(final String text)
    {
        return "-".equals(text) ? new String[0] : text.split(",", -1);
    }

    private static void append(final StringBuilder output, final List<String> values)
    {
        output.append(values.isEmpty() ? "-" : String.join(",", values));
    }

    private static long int64()
    {
        return fields.get(nextField++);
    }

    private static int int32()
    {
        return fields.get(nextField++).intValue();
    }

    private static byte[] bytes()
    {
        return data.get(nextData++);
    }

    private static String text()
    {
        return new String(bytes(), StandardCharsets.US_ASCII);
    }

    private static int encode(final int templateId, final MutableDirectBuffer buffer)
    {
        switch (templateId)
        {
            case SessionMessageHeaderEncoder.TEMPLATE_ID:
                return new SessionMessageHeaderEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).clusterSessionId(int64()).timestamp(int64()).encodedLength();

            case SessionEventEncoder.TEMPLATE_ID:
                return new SessionEventEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .clusterSessionId(int64()).correlationId(int64()).leadershipTermId(int64())
                    .leaderMemberId(int32()).code(EventCode.get(int32())).version(int32())
                    .leaderHeartbeatTimeoutNs(int64()).detail(text()).encodedLength();

            case SessionConnectRequestEncoder.TEMPLATE_ID:
            {
                final SessionConnectRequestEncoder encoder = new SessionConnectRequestEncoder()
                    .wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .correlationId(int64()).responseStreamId(int32()).version(int32()).responseChannel(text());
                final byte[] credentials = bytes();
                return encoder.putEncodedCredentials(credentials, 0, credentials.length).clientInfo(text())
                    .encodedLength();
            }

            case SessionCloseRequestEncoder.TEMPLATE_ID:
                return new SessionCloseRequestEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).clusterSessionId(int64()).encodedLength();

            case SessionKeepAliveEncoder.TEMPLATE_ID:
                return new SessionKeepAliveEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).clusterSessionId(int64()).encodedLength();

            case NewLeaderEventEncoder.TEMPLATE_ID:
                return new NewLeaderEventEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).clusterSessionId(int64()).leaderMemberId(int32())
                    .ingressEndpoints(text()).encodedLength();

            case ChallengeEncoder.TEMPLATE_ID:
            {
                final ChallengeEncoder encoder = new ChallengeEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .correlationId(int64()).clusterSessionId(int64());
                final byte[] challenge = bytes();
                return encoder.putEncodedChallenge(challenge, 0, challenge.length).encodedLength();
            }

            case ChallengeResponseEncoder.TEMPLATE_ID:
            {
                final ChallengeResponseEncoder encoder = new ChallengeResponseEncoder()
                    .wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .correlationId(int64()).clusterSessionId(int64());
                final byte[] credentials = bytes();
                return encoder.putEncodedCredentials(credentials, 0, credentials.length).encodedLength();
            }

            case AdminRequestEncoder.TEMPLATE_ID:
            {
                final AdminRequestEncoder encoder = new AdminRequestEncoder()
                    .wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).clusterSessionId(int64()).correlationId(int64())
                    .requestType(AdminRequestType.get(int32()));
                final byte[] payload = bytes();
                return encoder.putPayload(payload, 0, payload.length).encodedLength();
            }

            case AdminResponseEncoder.TEMPLATE_ID:
            {
                final AdminResponseEncoder encoder = new AdminResponseEncoder()
                    .wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .clusterSessionId(int64()).correlationId(int64()).requestType(AdminRequestType.get(int32()))
                    .responseCode(AdminResponseCode.get(int32())).message(text());
                final byte[] payload = bytes();
                return encoder.putPayload(payload, 0, payload.length).encodedLength();
            }

            case TimerEventEncoder.TEMPLATE_ID:
                return new TimerEventEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).correlationId(int64()).timestamp(int64()).encodedLength();

            case SessionOpenEventEncoder.TEMPLATE_ID:
            {
                final SessionOpenEventEncoder encoder = new SessionOpenEventEncoder()
                    .wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).correlationId(int64()).clusterSessionId(int64()).timestamp(int64())
                        .responseStreamId(int32()).responseChannel(text());
                final byte[] principal = bytes();
                return encoder.putEncodedPrincipal(principal, 0, principal.length).encodedLength();
            }

            case SessionCloseEventEncoder.TEMPLATE_ID:
                return new SessionCloseEventEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).clusterSessionId(int64()).timestamp(int64())
                        .closeReason(CloseReason.get(int32())).encodedLength();

            case ClusterActionRequestEncoder.TEMPLATE_ID:
                return new ClusterActionRequestEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).logPosition(int64()).timestamp(int64())
                        .action(ClusterAction.get(int32())).flags(int32()).encodedLength();

            case NewLeadershipTermEventEncoder.TEMPLATE_ID:
                return new NewLeadershipTermEventEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .leadershipTermId(int64()).logPosition(int64()).timestamp(int64()).termBaseLogPosition(int64())
                        .leaderMemberId(int32()).logSessionId(int32()).timeUnit(ClusterTimeUnit.get(int32()))
                        .appVersion(int32()).encodedLength();

            case CloseSessionEncoder.TEMPLATE_ID:
                return new CloseSessionEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .clusterSessionId(int64()).encodedLength();

            case ScheduleTimerEncoder.TEMPLATE_ID:
                return new ScheduleTimerEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .correlationId(int64()).deadline(int64()).encodedLength();

            case CancelTimerEncoder.TEMPLATE_ID:
                return new CancelTimerEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .correlationId(int64()).encodedLength();

            case ServiceAckEncoder.TEMPLATE_ID:
                return new ServiceAckEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .logPosition(int64()).timestamp(int64()).ackId(int64()).relevantId(int64()).serviceId(int32())
                        .encodedLength();

            case JoinLogEncoder.TEMPLATE_ID:
                return new JoinLogEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .logPosition(int64()).maxLogPosition(int64()).memberId(int32()).logSessionId(int32())
                        .logStreamId(int32()).isStartup(BooleanType.get(int32())).role(int32())
                        .isStandby(BooleanType.get(int32())).logChannel(text()).encodedLength();

            case ServiceTerminationPositionEncoder.TEMPLATE_ID:
            {
                final ServiceTerminationPositionEncoder encoder =
                    new ServiceTerminationPositionEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                        .logPosition(int64());
                if (hasAckRequired())
                {
                    call(encoder, "ackRequired", BooleanType.get(int32()));
                }
                return encoder.encodedLength();
            }

            case SnapshotMarkerEncoder.TEMPLATE_ID:
                return new SnapshotMarkerEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .typeId(int64()).logPosition(int64()).leadershipTermId(int64()).index(int32())
                        .mark(SnapshotMark.get(int32())).timeUnit(ClusterTimeUnit.get(int32())).appVersion(int32())
                        .encodedLength();

            case ClientSessionEncoder.TEMPLATE_ID:
            {
                final ClientSessionEncoder encoder = new ClientSessionEncoder()
                    .wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .clusterSessionId(int64()).responseStreamId(int32()).responseChannel(text());
                final byte[] principal = bytes();
                return encoder.putEncodedPrincipal(principal, 0, principal.length).encodedLength();
            }

            case RequestServiceAckEncoder.TEMPLATE_ID:
                return new RequestServiceAckEncoder().wrapAndApplyHeader(buffer, 0, headerEncoder)
                    .logPosition(int64()).encodedLength();

            default:
                throw new IllegalArgumentException("template " + templateId);
        }
    }

    private static void add(final long... values)
    {
        for (final long value : values)
        {
            fields.add(value);
        }
    }

    private static void add(final String text)
    {
        data.add(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static void decode(final UnsafeBuffer buffer)
    {
        header.wrap(buffer, 0);
        switch (header.templateId())
        {
            case SessionMessageHeaderDecoder.TEMPLATE_ID:
            {
                final SessionMessageHeaderDecoder m =
                    new SessionMessageHeaderDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.clusterSessionId(), m.timestamp());
                break;
            }

            case SessionEventDecoder.TEMPLATE_ID:
            {
                final SessionEventDecoder m = new SessionEventDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.clusterSessionId(), m.correlationId(), m.leadershipTermId(), m.leaderMemberId(),
                    m.code().value(), m.version(), m.leaderHeartbeatTimeoutNs());
                add(m.detail());
                break;
            }

            case SessionConnectRequestDecoder.TEMPLATE_ID:
            {
                final SessionConnectRequestDecoder m =
                    new SessionConnectRequestDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.correlationId(), m.responseStreamId(), m.version());
                add(m.responseChannel());
                final byte[] credentials = new byte[m.encodedCredentialsLength()];
                m.getEncodedCredentials(credentials, 0, credentials.length);
                data.add(credentials);
                add(m.clientInfo());
                break;
            }

            case SessionCloseRequestDecoder.TEMPLATE_ID:
            {
                final SessionCloseRequestDecoder m =
                    new SessionCloseRequestDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.clusterSessionId());
                break;
            }

            case SessionKeepAliveDecoder.TEMPLATE_ID:
            {
                final SessionKeepAliveDecoder m =
                    new SessionKeepAliveDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.clusterSessionId());
                break;
            }

            case NewLeaderEventDecoder.TEMPLATE_ID:
            {
                final NewLeaderEventDecoder m = new NewLeaderEventDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.clusterSessionId(), m.leaderMemberId());
                add(m.ingressEndpoints());
                break;
            }

            case ChallengeDecoder.TEMPLATE_ID:
            {
                final ChallengeDecoder m = new ChallengeDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.correlationId(), m.clusterSessionId());
                final byte[] challenge = new byte[m.encodedChallengeLength()];
                m.getEncodedChallenge(challenge, 0, challenge.length);
                data.add(challenge);
                break;
            }

            case ChallengeResponseDecoder.TEMPLATE_ID:
            {
                final ChallengeResponseDecoder m =
                    new ChallengeResponseDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.correlationId(), m.clusterSessionId());
                final byte[] credentials = new byte[m.encodedCredentialsLength()];
                m.getEncodedCredentials(credentials, 0, credentials.length);
                data.add(credentials);
                break;
            }

            case AdminRequestDecoder.TEMPLATE_ID:
            {
                final AdminRequestDecoder m = new AdminRequestDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.clusterSessionId(), m.correlationId(), m.requestType().value());
                final byte[] payload = new byte[m.payloadLength()];
                m.getPayload(payload, 0, payload.length);
                data.add(payload);
                break;
            }

            case AdminResponseDecoder.TEMPLATE_ID:
            {
                final AdminResponseDecoder m = new AdminResponseDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.clusterSessionId(), m.correlationId(), m.requestType().value(), m.responseCode().value());
                add(m.message());
                final byte[] payload = new byte[m.payloadLength()];
                m.getPayload(payload, 0, payload.length);
                data.add(payload);
                break;
            }

            case TimerEventDecoder.TEMPLATE_ID:
            {
                final TimerEventDecoder m =
                    new TimerEventDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.correlationId(), m.timestamp());
                break;
            }

            case SessionOpenEventDecoder.TEMPLATE_ID:
            {
                final SessionOpenEventDecoder m =
                    new SessionOpenEventDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.correlationId(), m.clusterSessionId(), m.timestamp(), m.responseStreamId());
                add(m.responseChannel());
                final byte[] principal = new byte[m.encodedPrincipalLength()];
                m.getEncodedPrincipal(principal, 0, principal.length);
                data.add(principal);
                break;
            }

            case SessionCloseEventDecoder.TEMPLATE_ID:
            {
                final SessionCloseEventDecoder m =
                    new SessionCloseEventDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.clusterSessionId(), m.timestamp(), m.closeReason().value());
                break;
            }

            case ClusterActionRequestDecoder.TEMPLATE_ID:
            {
                final ClusterActionRequestDecoder m =
                    new ClusterActionRequestDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.logPosition(), m.timestamp(), m.action().value(), m.flags());
                break;
            }

            case NewLeadershipTermEventDecoder.TEMPLATE_ID:
            {
                final NewLeadershipTermEventDecoder m =
                    new NewLeadershipTermEventDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.leadershipTermId(), m.logPosition(), m.timestamp(), m.termBaseLogPosition(), m.leaderMemberId(),
                    m.logSessionId(), m.timeUnit().value(), m.appVersion());
                break;
            }

            case CloseSessionDecoder.TEMPLATE_ID:
            {
                final CloseSessionDecoder m =
                    new CloseSessionDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.clusterSessionId());
                break;
            }

            case ScheduleTimerDecoder.TEMPLATE_ID:
            {
                final ScheduleTimerDecoder m =
                    new ScheduleTimerDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.correlationId(), m.deadline());
                break;
            }

            case CancelTimerDecoder.TEMPLATE_ID:
            {
                final CancelTimerDecoder m =
                    new CancelTimerDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.correlationId());
                break;
            }

            case ServiceAckDecoder.TEMPLATE_ID:
            {
                final ServiceAckDecoder m =
                    new ServiceAckDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.logPosition(), m.timestamp(), m.ackId(), m.relevantId(), m.serviceId());
                break;
            }

            case JoinLogDecoder.TEMPLATE_ID:
            {
                final JoinLogDecoder m =
                    new JoinLogDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.logPosition(), m.maxLogPosition(), m.memberId(), m.logSessionId(), m.logStreamId(),
                    m.isStartup().value(), m.role(), m.isStandby().value());
                add(m.logChannel());
                break;
            }

            case ServiceTerminationPositionDecoder.TEMPLATE_ID:
            {
                final ServiceTerminationPositionDecoder m =
                    new ServiceTerminationPositionDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.logPosition());
                if (hasAckRequired())
                {
                    add(((BooleanType)call(m, "ackRequired")).value());
                }
                break;
            }

            case SnapshotMarkerDecoder.TEMPLATE_ID:
            {
                final SnapshotMarkerDecoder m =
                    new SnapshotMarkerDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.typeId(), m.logPosition(), m.leadershipTermId(), m.index(), m.mark().value(),
                    m.timeUnit().value(), m.appVersion());
                break;
            }

            case ClientSessionDecoder.TEMPLATE_ID:
            {
                final ClientSessionDecoder m =
                    new ClientSessionDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.clusterSessionId(), m.responseStreamId());
                add(m.responseChannel());
                final byte[] principal = new byte[m.encodedPrincipalLength()];
                m.getEncodedPrincipal(principal, 0, principal.length);
                data.add(principal);
                break;
            }

            case RequestServiceAckDecoder.TEMPLATE_ID:
            {
                final RequestServiceAckDecoder m =
                    new RequestServiceAckDecoder().wrapAndApplyHeader(buffer, 0, header);
                add(m.logPosition());
                break;
            }

            default:
                throw new IllegalArgumentException("template " + header.templateId());
        }
    }
}
