package org.mobilesync.internal.connection;

import java.util.ArrayList;
import java.util.List;
import org.mobilesync.internal.wire.OperationRefusal;

/** The reply about the operations of a frame. */
public final class OperationsAnswer {
    /** The ids of the operations that the service has accepted and will execute. */
    public final List<String> taken = new ArrayList<>();
    /** The operations that the service will never accept; each gets its result now. */
    public final List<OperationRefusal> over = new ArrayList<>();
    /** The ids of the operations that the service does not have. They can be cancelled. */
    public final List<String> free = new ArrayList<>();
}
