/// Every bound that more than one process must agree on: unit, value, reason.
package enum Limits {
    /// How long after its commit the notice of a push that is stored nowhere may still be on its way: for that long no
    /// session goes past the push. Longer than the writer waits for what the gateways say of it.
    package static let liveNoticeWait = Duration.seconds(2)
    /// Characters (UTF-16 units) of a Sync ID (spec H2).
    package static let bizTypeUnits = 30
    /// UTF-16 units of a linkToken: a user or device id (spec H2).
    package static let linkTokenUnits = 100
    /// UTF-16 units of a thirdMsgId (spec H2).
    package static let thirdMessageIDUnits = 100
    /// UTF-16 units of a payload, or of a binary payload's Base64 text (spec H2).
    package static let payloadUnits = 4_096
    /// UTF-16 units of osType (spec H2).
    package static let osTypeUnits = 10
    /// UTF-16 units of appMinVersion and appMaxVersion (spec H2).
    package static let versionUnits = 20
    /// Bytes of an app's version that figures count by.
    package static let countedVersionBytes = 32
    /// UTF-16 units of userId and sessionId at bind, unless the instance allows longer sessions (spec V1).
    package static let sessionUnits = 100
    /// The longest sessions that an instance can allow (spec V1).
    package static let longestSessionUnits = 4_096
    /// The longest that a verdict can be used for; revocations are kept for a day more (spec V5, H7).
    package static let longestVerdictLifetime = Duration.seconds(30 * 86_400)
    /// Live keys of one purpose in an instance: the one in use and its successor (spec H9).
    package static let liveKeys = 2
    /// Business types that a device may suspend at once (DeviceProtocol.md).
    package static let suspendedBizTypes = 200
    /// UTF-16 units of a filter, and how deep its parentheses and nots nest (spec, two-way §2, Parameters).
    package static let filterUnits = 1_000
    package static let filterDepth = 16
    /// Attributes, and parameters, that a configuration can declare, and UTF-16 units of either declaration.
    package static let subscriptionNames = 16
    package static let subscriptionDeclarationUnits = 2_000
    /// Letters of the name of an attribute or parameter.
    package static let subscriptionNameUnits = 30
    /// UTF-16 units of the text that an attribute or parameter holds.
    package static let subscriptionValueUnits = 200
    /// Parameters that a device can set at once, of all business types (DeviceProtocol.md).
    package static let deviceParameters = 64
    /// Filters that a receiver of a channel can have had within what is kept: what it was sent is known by them.
    package static let filterSegments = 256
    /// Oplogs of a channel, the newest, that are looked at for what a changed filter lets through: what bounds the time
    /// that a change takes.
    package static let filterRereadOplogs = 20_000
    /// Oplogs in one page of history that a device may ask for.
    package static let historyPageOplogs = 100
    /// Bytes of payload at which a page of history ends.
    package static let historyPageBytes = 64 * 1_024
    /// Oplogs looked at for one page of history, and counted as waiting in a summary: what bounds an answer's cost.
    package static let oplogsLookedAt = 1_000
    /// Channels in one page of a summary: with the largest payloads it stays below 200 KiB.
    package static let summaryPageChannels = 16
    /// How long an oplog is kept when neither caller nor instance names an earlier end (spec D11).
    package static let retention = Duration.seconds(30 * 86_400)
    /// Newest oplogs of a backlog under Threshold when the configuration names none (spec D10).
    package static let defaultThreshold = 100
    /// Oplogs in one page of a backlog: small enough that a page of the largest payloads stays under 1 MiB.
    package static let fetchPageOplogs = 64
    /// How long a gateway's lease lasts from the moment it asked for it (design §4).
    package static let gatewayLease = Duration.seconds(6)
    /// How often a gateway renews its lease (design §4).
    package static let gatewayLeaseRenewal = Duration.seconds(2)
    /// How old a process's knowledge of the control data may be for it to decide who may call: a change is in force
    /// everywhere once this has passed. Long enough to outlive two answers that were lost.
    package static let controlAge = Duration.seconds(6)
    /// The first wait of the resend ladder when nobody names another: an app that works has confirmed by then (spec D14).
    package static let firstResend = Duration.seconds(10)
    /// The shortest first wait of the resend ladder: below it repeats only race with the confirmation.
    package static let shortestFirstResend = Duration.milliseconds(1)
    /// The longest first wait of the resend ladder: the whole ladder then takes four days of connected time.
    package static let longestFirstResend = Duration.seconds(3_600)
    /// Repeats on the resend ladder after the first hand-out (spec D14).
    package static let resendRepeats = 6
    /// Bytes of an operation's id: printable ASCII (DeviceProtocol.md, Operations).
    package static let operationIDBytes = 64
    /// Bytes of an entity's key.
    package static let entityKeyBytes = 256
    /// UTF-16 units of an operation's name.
    package static let operationNameUnits = 30
    /// Operations that go with another in one call.
    package static let operationChildren = 100
    /// Operations in one frame of a device.
    package static let frameOperations = 64
    /// Bytes of one operation's bodies, those of its children included: with all the rest it fits a frame.
    package static let operationBodyBytes = 192 * 1_024
    /// UTF-16 units of what a tenant says of an operation.
    package static let operationMessageUnits = 1_000
    /// Bytes of a log that a device is asked for.
    package static let diagnosisBytes = 20_000_000
    /// Parts of one.
    package static let diagnosisParts = 20_000
    /// Tasks of an instance that ask for logs: with all of them whole, 2 GB.
    package static let diagnosisTasks = 100
    /// How long such a task is kept after anything has happened to it.
    package static let diagnosisAge = Duration.seconds(30 * 86_400)
    /// Hand-outs of one oplog of any cause; one more would be another turn of a crash loop (DeviceProtocol.md).
    package static let resendHandOuts = 50
}
