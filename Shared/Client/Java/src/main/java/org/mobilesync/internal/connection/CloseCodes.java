package org.mobilesync.internal.connection;

/** The reactions to close codes (DeviceProtocol.md, Close codes). */
public final class CloseCodes {
    /** The device requested it. */
    public static final long NORMAL = 1000;
    /** The device id belongs to another secret; with a new id the device may connect at once. */
    public static final long REGISTER_ANEW = 5004;

    /** The reaction of a device. */
    public enum Reaction {
        /** Connect again, with back-off. */
        RECONNECT,
        /** Connect again, not before the gateway's time. */
        RECONNECT_LATER,
        /** Connect to the address of the frame. */
        RECONNECT_ELSEWHERE,
        /** Connect again without a user. */
        SIGN_IN_AGAIN,
        /** Do not connect until the app requests it. */
        STAY_AWAY
    }

    private CloseCodes() {}

    /** Returns the reaction to a code, also to an unknown one: its thousands decide. */
    public static Reaction reaction(long code) {
        switch ((int) Math.min(code / 1_000, 9)) {
            case 1:
                return Reaction.RECONNECT;
            case 3:
                return Reaction.RECONNECT_ELSEWHERE;
            case 4:
                return Reaction.SIGN_IN_AGAIN;
            case 5:
                return Reaction.STAY_AWAY;
            default:
                return Reaction.RECONNECT_LATER;
        }
    }
}
