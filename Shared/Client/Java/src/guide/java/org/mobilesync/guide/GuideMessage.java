package org.mobilesync.guide;

import com.alipay.mobile.rome.longlinkservice.syncmodel.SyncMessage;
import java.util.Base64;
import org.mobilesync.SyncBatch;
import org.mobilesync.SyncOplog;
import org.mobilesync.internal.json.JsonText;

/** Makes the guide's messages of batches. */
final class GuideMessage {
    private GuideMessage() {}

    /** Returns the message of a batch. */
    static SyncMessage of(SyncBatch batch) {
        SyncMessage message = new SyncMessage();
        message.userId = batch.userId();
        message.biz = batch.bizType();
        message.hasMore = batch.hasMore();
        StringBuilder json = new StringBuilder("[");
        for (SyncOplog oplog : batch.oplogs()) {
            if (json.length() > 1) json.append(',');
            append(oplog, json);
            message.id = Long.toString(oplog.oplogId());
        }
        message.msgData = json.append(']').toString();
        return message;
    }

    private static void append(SyncOplog oplog, StringBuilder json) {
        String payload = oplog.isBinary() ? Base64.getEncoder().encodeToString(oplog.payload()) : oplog.text();
        json.append("{\"pl\":").append(JsonText.quoted(payload));
        if (oplog.isBinary()) json.append(",\"isB\":1");
        json.append(",\"mk\":").append(oplog.oplogId()).append(",\"mct\":").append(oplog.createdAtMs());
        if (oplog.recalls() != 0) json.append(",\"recalls\":").append(oplog.recalls());
        if (oplog.isReplay()) json.append(",\"isReplay\":1");
        json.append('}');
    }
}
