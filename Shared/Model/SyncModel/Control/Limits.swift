/// Limits on which several processes must agree: unit, value, reason.
package enum Limits {
    /// How long the notice of a non-persistent push can be in transit after the commit. For this time, sessions do not
    /// go past the push. Longer than the writer's wait for the gateways' replies.
    package static let liveNoticeWait = Duration.seconds(2)
    /// Characters (UTF-16 units) of a Sync ID (H2).
    package static let bizTypeUnits = 30
    /// UTF-16 units of a linkToken: a user or device id (H2).
    package static let linkTokenUnits = 100
    /// UTF-16 units of a thirdMsgId (H2).
    package static let thirdMessageIDUnits = 100
    /// UTF-16 units of the name of a conversation (D19).
    package static let conversationUnits = 100
    /// UTF-16 units of a payload, or of a binary payload's Base64 text (H2).
    package static let payloadUnits = 4_096
    /// UTF-16 units of osType (H2).
    package static let osTypeUnits = 10
    /// UTF-16 units of appMinVersion and appMaxVersion (H2).
    package static let versionUnits = 20
    /// Bytes of an app version that figures count.
    package static let countedVersionBytes = 32
    /// UTF-16 units of userId and sessionId at bind, unless the instance allows longer sessions (V1).
    package static let sessionUnits = 100
    /// UTF-16 units of the longest session id that an instance can allow (V1).
    package static let longestSessionUnits = 4_096
    /// The longest verdict lifetime; revocations are kept for one day more (V5, H7).
    package static let longestVerdictLifetime = Duration.seconds(30 * 86_400)
    /// Live keys of one purpose in an instance: the key in use and its successor (H9).
    package static let liveKeys = 2
    /// Sync IDs that a device may suspend at once (DeviceProtocol.md).
    package static let suspendedBizTypes = 200
    /// UTF-16 units of a filter, and the depth of its parentheses and nots (ENT8).
    package static let filterUnits = 1_000
    package static let filterDepth = 16
    /// Attributes, and parameters, that a configuration can declare; and UTF-16 units of each declaration.
    package static let subscriptionNames = 16
    package static let subscriptionDeclarationUnits = 2_000
    /// Characters of the name of an attribute or parameter.
    package static let subscriptionNameUnits = 30
    /// UTF-16 units of a text value of an attribute or parameter.
    package static let subscriptionValueUnits = 200
    /// Parameters that a device can set at once, over all Sync IDs (DeviceProtocol.md).
    package static let deviceParameters = 64
    /// Filters in the history of a receiver. The history tells which oplogs the receiver was sent.
    package static let filterSegments = 256
    /// The newest oplogs of a channel that are compared with a changed filter. This limits the time of a change.
    package static let filterRereadOplogs = 20_000
    /// Oplogs in one page of history.
    package static let historyPageOplogs = 100
    /// Bytes of payload after which a page of history ends.
    package static let historyPageBytes = 64 * 1_024
    /// Oplogs that are read for one page of history, or counted as waiting in a summary. This limits the cost of a
    /// reply.
    package static let oplogsLookedAt = 1_000
    /// Channels or conversations in one page of a summary; with the largest payloads and names a page stays below
    /// 220 KiB.
    package static let summaryPageChannels = 16
    /// How long an oplog is kept when neither the caller nor the instance sets an earlier end (D11).
    package static let retention = Duration.seconds(30 * 86_400)
    /// The threshold of a backlog when the configuration sets none (D10).
    package static let defaultThreshold = 100
    /// Oplogs in one page of a backlog; a page of the largest payloads stays below 1 MiB.
    package static let fetchPageOplogs = 64
    /// The duration of a lease, from the moment of the gateway's request (Design.md#leases-and-fencing).
    package static let gatewayLease = Duration.seconds(6)
    /// The interval of lease renewals (Design.md#leases-and-fencing).
    package static let gatewayLeaseRenewal = Duration.seconds(1)
    /// The longest age of control data with which a process may accept calls. After this time a change is in force
    /// everywhere. Long enough for two lost replies.
    package static let controlAge = Duration.seconds(6)
    /// The default first wait of the resend ladder; a working app has confirmed by then (D14).
    package static let firstResend = Duration.seconds(10)
    /// The shortest first wait of the resend ladder; with a shorter one, resends would race with confirmations.
    package static let shortestFirstResend = Duration.milliseconds(1)
    /// The longest first wait of the resend ladder; the whole ladder then takes four days of connected time.
    package static let longestFirstResend = Duration.seconds(3_600)
    /// Resends on the ladder after the first hand-out (D14).
    package static let resendRepeats = 6
    /// Bytes of an operation id in printable ASCII (DeviceProtocol.md, Operations).
    package static let operationIDBytes = 64
    /// Bytes of an entity key.
    package static let entityKeyBytes = 256
    /// UTF-16 units of an operation's name.
    package static let operationNameUnits = 30
    /// Children of one operation.
    package static let operationChildren = 100
    /// Operations in one frame of a device.
    package static let frameOperations = 64
    /// Bytes of the bodies of one operation and its children; with all other fields it fits a frame.
    package static let operationBodyBytes = 192 * 1_024
    /// UTF-16 units of a tenant's message about an operation.
    package static let operationMessageUnits = 1_000
    /// Maximum bytes of a requested log.
    package static let diagnosisBytes = 20_000_000
    /// Maximum parts of a log.
    package static let diagnosisParts = 20_000
    /// Diagnosis tasks of an instance; with complete logs, all of them take 2 GB.
    package static let diagnosisTasks = 100
    /// How long a diagnosis task is kept after its last change.
    package static let diagnosisAge = Duration.seconds(30 * 86_400)
    /// Hand-outs of one oplog for any cause; one more could continue a crash loop (DeviceProtocol.md).
    package static let resendHandOuts = 50
}
