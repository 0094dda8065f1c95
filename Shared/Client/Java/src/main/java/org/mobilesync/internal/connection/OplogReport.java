package org.mobilesync.internal.connection;

import java.util.ArrayList;
import java.util.List;
import org.mobilesync.internal.wire.ConfirmedOplogs;
import org.mobilesync.internal.wire.ResentOplog;

/** The confirmations, resends and dead letters that the gateway has not recorded: the content of one ConfirmReport. */
public final class OplogReport {
    /** The most items in one report. With the longest names they fit into a frame. */
    public static final int LONGEST = 500;

    /** The oplogs that the app has confirmed. */
    public final List<ConfirmedOplogs> confirmed = new ArrayList<>();
    /** The oplogs that were resent or became dead letters. */
    public final List<ResentOplog> resent = new ArrayList<>();

    /** Returns whether there is nothing to report. */
    public boolean isEmpty() {
        return confirmed.isEmpty() && resent.isEmpty();
    }
}
