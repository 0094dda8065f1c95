package org.mobilesync.internal.connection;

import java.util.List;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.UserParameters;

/**
 * The actions that the state machine requests.
 *
 * <p>The machine has changed its own state before it calls an action, so an action may call the machine again.
 */
public interface ConnectionActions {
    /** Writes a frame. */
    void send(Body frame);

    /** Stores the batches in one transaction, then reports to {@link ConnectionMachine#stored}. */
    void store(List<ChannelBatch> batches, String userId, long bindNumber);

    /**
     * Collects the reports that the gateway has not recorded, then calls
     * {@link ConnectionMachine#collected(OplogReport, long)}.
     */
    void collectReport(String userId, long bindNumber);

    /** Marks a report as recorded by the gateway. */
    void recorded(OplogReport report, String userId);

    /** Collects the user's operations that the service has not accepted. */
    void collectOperations(String userId);

    /** Applies the service's reply about operations. */
    void operationsAnswered(OperationsAnswer answer);

    /** Collects the user's parameters that the service has not confirmed. */
    void collectParameters(String userId);

    /** Applies the service's reply about these values; a null refusal: it stores them, otherwise it never will. */
    void parametersAnswered(List<Parameter> parameters, String userId, String refusal);

    /** Replaces the known values of the server. */
    void replaceParameters(UserParameters list, String userId);

    /** The gateway has accepted the connect; 0 for a value that it does not name. */
    void connected(long firstResendMs, long serverTimeMs);

    /** The gateway has sent the complete backlog; userId is null without a user. */
    void caughtUp(String userId);

    /** The gateway has accepted the user. */
    void bound(String userId);

    /** The gateway has refused the user. */
    void bindRefused(String userId, String reason);

    /** The session's verdict is invalid. */
    void sessionInvalid(String userId, String reason);

    /** The device owns the user's single-device data, as the bind call with this number requested. */
    void ownershipTaken(long request, long epoch);

    /** Records the gateway's clock, because it refused the timestamp of the signature. */
    void setSigningTime(long serverTimeMs);

    /** Makes a new device id and secret, because the id belongs to another secret. */
    void replaceIdentity();

    /** Ends the connection. */
    void end(ConnectionEnd end);
}
