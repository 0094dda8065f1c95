import BusMessages
import Foundation
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization

/// Sends the commands of device sessions to store workers, validators and relays, and passes each reply to its session.
final class SessionCommandSender: Sendable {
    let gatewayID: String
    let bus: MessageBus
    let globalChannels: GlobalChannelCaches
    private let contexts: SessionContextSource
    /// Numbers registrations and updates, because several writers can execute them in another order.
    private let changes = Atomic<UInt64>(0)

    init(gatewayID: String, bus: MessageBus, contexts: SessionContextSource) {
        self.gatewayID = gatewayID
        self.bus = bus
        self.contexts = contexts
        globalChannels = GlobalChannelCaches(time: contexts.databaseTime.current) { channelID, after, newest, answer in
            bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
                .with {
                    $0.correlation = number
                    $0.page.channelID = channelID
                    $0.page.after = after.value
                    $0.page.limit = UInt32(Limits.fetchPageOplogs)
                    $0.page.newest = UInt32(newest)
                    $0.page.anyDevice = true
                }
            } completion: { result in
                if case .success(let reply) = result, case .fetch(let page)? = reply.body {
                    answer(page)
                } else {
                    answer(nil)
                }
            }
        }
    }

    // MARK: Registration

    func open(
        _ identity: SessionIdentity, connectionEpoch: Int64, opensBind: Bool, claim: Ownership.Claim?,
        verdictFor: Duration, for session: SessionHandle
    ) {
        let gatewayEpoch = contexts.lease?.epoch ?? 0
        let registration = changes.wrappingAdd(1, ordering: .relaxed).newValue
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { number in
            .with {
                $0.correlation = number
                $0.open.gatewayID = gatewayID
                $0.open.gatewayEpoch = gatewayEpoch
                $0.open.instanceID = identity.instanceID.text
                $0.open.deviceID = identity.deviceID.text
                $0.open.storeID = identity.storeID.text
                $0.open.userID = identity.userID?.text ?? ""
                $0.open.operatingSystem = Mss_Bus_V1_OperatingSystem(identity.traits.operatingSystem)
                $0.open.appVersion = identity.traits.appVersion
                $0.open.foreground = identity.isForeground
                $0.open.connectionNumber = session.number
                $0.open.deviceConnectionNumber = identity.connect.connectionNumber
                $0.open.registrationNumber = registration
                $0.open.connectionEpoch = connectionEpoch
                $0.open.opensBind = opensBind
                switch claim {
                case .requested?, .latestConnection?: $0.open.takesOwnership = true
                case .given(let epoch)?: $0.open.ownershipEpoch = epoch
                case nil: break
                }
                $0.open.verdictValidMs = verdictFor.wholeMilliseconds
                $0.open.suspended = identity.subscriptions.suspended.map(\.text).sorted()
                if identity.userID != nil { $0.open.sessionDigest = Data(identity.sessionDigest) }
                $0.open.deviceSecretDigest = Data(identity.connect.secretDigest)
                $0.open.bindsDevice = contexts.control.instance(identity.instanceID)?.bindsDevices ?? false
                if let token = identity.connect.pushToken { $0.open.pushToken = token.bus }
                $0.open.filtered = identity.subscriptions.filtered.map(\.text)
                if !identity.subscriptions.filtered.isEmpty {
                    $0.open.parameters = identity.subscriptions.parameters.map(\.bus)
                }
            }
        } completion: { result in
            session.eventLoop.execute {
                guard case .success(let reply) = result, case .session(let registered)? = reply.body else {
                    return session.handler.value.handle(.registered(nil, bindNumber: identity.bindNumber))
                }
                session.handler.value.registered(identity, registered)
            }
        }
    }

    /// Updates a session in the store. Without a reply the session registers again: the store would answer NOT_ONLINE
    /// for an eligible device.
    func update(
        _ identity: SessionIdentity, connectionEpoch: Int64, verdictFor: Duration, for session: SessionHandle
    ) {
        let change = changes.wrappingAdd(1, ordering: .relaxed).newValue
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { number in
            .with {
                $0.correlation = number
                $0.update.instanceID = identity.instanceID.text
                $0.update.deviceID = identity.deviceID.text
                $0.update.connectionEpoch = connectionEpoch
                $0.update.number = change
                $0.update.foreground = identity.isForeground
                $0.update.verdictValidMs = verdictFor.wholeMilliseconds
            }
        } completion: { result in
            if case .failure = result { session.handle(.registrationDue) }
        }
    }

    /// Removes a session from the store. A lost command is harmless: the next registration of the device replaces the
    /// session.
    func close(_ identity: SessionIdentity, connectionEpoch: Int64) {
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { number in
            .with {
                $0.correlation = number
                $0.close.instanceID = identity.instanceID.text
                $0.close.deviceID = identity.deviceID.text
                $0.close.connectionEpoch = connectionEpoch
            }
        } completion: { _ in
        }
    }

    /// Claims the nonce of a Connect, for all gateways.
    func claim(_ claim: NonceClaim, for session: SessionHandle) {
        bus.claimNonce(claim.nonce, of: claim.keyID, expiresAt: claim.expiresAt) { result in
            session.handle(.claimed(try? result.get()))
        }
    }

    // MARK: Reading

    /// Reads a page. A page of a global channel comes from the cache if possible.
    func fetch(_ request: PageRequest, for session: SessionHandle) {
        // A threshold with filters is particular to the session.
        guard request.isGlobal, request.filters == nil else { return read(request, for: session) }
        globalChannels.page(for: request) { [self] page in
            guard let page else { return read(request, for: session) }
            session.handle(.fetched(page, channelID: request.channelID, bindNumber: request.bindNumber))
        }
    }

    private func read(_ request: PageRequest, for session: SessionHandle) {
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
            .with {
                $0.correlation = number
                $0.page.channelID = request.channelID
                $0.page.after = request.after.value
                $0.page.limit = UInt32(Limits.fetchPageOplogs)
                $0.page.newest = UInt32(request.newest)
                $0.page.newestUpto = request.newestUpto.value
                $0.page.operatingSystem = Mss_Bus_V1_OperatingSystem(request.traits.operatingSystem)
                $0.page.appVersion = request.traits.appVersion
                $0.page.slot = UInt32(request.traits.slot.number)
                $0.page.ownerDeviceID = request.onlyOwner?.text ?? ""
                $0.page.filters = request.filters?.bus ?? []
            }
        } completion: { result in
            var page: Mss_Bus_V1_FetchReply?
            if case .success(let reply) = result, case .fetch(let fetched)? = reply.body { page = fetched }
            session.handle(.fetched(page, channelID: request.channelID, bindNumber: request.bindNumber))
        }
    }

    /// Reads a page of history. Without a reply the device is asked to repeat the request.
    func readHistory(_ read: HistoryRead, for session: SessionHandle) {
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
            .with {
                $0.correlation = number
                $0.history.channelID = read.channelID
                $0.history.after = read.after.value
                $0.history.before = read.before.value
                $0.history.count = UInt32(read.count)
                $0.history.oldestFirst = read.isOldestFirst
                $0.history.operatingSystem = Mss_Bus_V1_OperatingSystem(read.traits.operatingSystem)
                $0.history.appVersion = read.traits.appVersion
                $0.history.slot = UInt32(read.traits.slot.number)
                $0.history.ownerDeviceID = read.onlyOwner?.text ?? ""
                $0.history.filter = read.filter.text
                $0.history.conversation = read.conversation
            }
        } completion: { result in
            var page: Mss_Bus_V1_HistoryReply?
            if case .success(let reply) = result, case .history(let history)? = reply.body { page = history }
            session.handle(.historyRead(page, of: read.id))
        }
    }

    /// Reads the summary of channels. Without a reply the device is asked to repeat the request.
    func readSummary(_ read: SummaryRead, for session: SessionHandle) {
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
            .with {
                $0.correlation = number
                $0.summary.operatingSystem = Mss_Bus_V1_OperatingSystem(read.traits.operatingSystem)
                $0.summary.appVersion = read.traits.appVersion
                $0.summary.slot = UInt32(read.traits.slot.number)
                if let conversations = read.conversations {
                    $0.summary.conversations.after = conversations.after
                    $0.summary.conversations.count = UInt32(conversations.count)
                }
                $0.summary.channels = read.channels.map { channel in
                    .with {
                        $0.channelID = channel.channelID
                        $0.deviceID = channel.receiver.storeID == nil ? "" : channel.receiver.deviceID.text
                        $0.storeID = channel.receiver.storeID?.text ?? ""
                        $0.userID = channel.receiver.userID?.text ?? ""
                        $0.stored = channel.stored.value
                        $0.ownerDeviceID = channel.onlyOwner?.text ?? ""
                        $0.filter = channel.filter.text
                    }
                }
            }
        } completion: { result in
            var page: Mss_Bus_V1_SummaryReply?
            if case .success(let reply) = result, case .summary(let summary)? = reply.body { page = summary }
            session.handle(.summaryRead(page, of: read.id))
        }
    }

    // MARK: Writing

    /// Stores the count of a resend before the resend is sent. If this fails, the session requests it again (R7).
    func recordResend(
        channelID: Int64, _ receiver: SyncReceiver, oplogID: OplogID, repeats: Int, for session: SessionHandle
    ) {
        bus.request(.ack, as: Mss_Bus_V1_AckCommands.self) { number in
            .with {
                $0.correlation = number
                $0.channelID = channelID
                $0.deviceID = receiver.deviceID.text
                $0.storeID = receiver.storeID?.text ?? ""
                $0.userID = receiver.userID?.text ?? ""
                $0.resentID = oplogID.value
                $0.repeats = UInt32(repeats)
            }
        } completion: { result in
            guard case .success = result else { return }
            session.handle(.resendRecorded(channelID: channelID, oplogID: oplogID, repeats: repeats))
        }
    }

    /// Stores a user's values. The session receives the outcome.
    func keepParameters(
        _ parameters: [DeviceParameter], of userID: UserID, number: UInt32, for session: SessionHandle,
        instanceID: InstanceID?
    ) {
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.keepParameters.instanceID = instanceID?.text ?? ""
                $0.keepParameters.userID = userID.text
                $0.keepParameters.parameters = parameters.map(\.bus)
            }
        } completion: { result in
            var isKept = false
            if case .success(let reply) = result, case .session? = reply.body { isKept = true }
            session.handle(.parametersKept(isKept, number: number))
        }
    }

    /// Sends a frame of operations to a relay, which replies when they are stored.
    func submit(_ submission: OperationSubmission, for session: SessionHandle) {
        bus.request(.submit, as: Mss_Bus_V1_SubmitCommands.self) { number in
            .with {
                $0.correlation = number
                $0.instanceID = submission.instanceID.text
                $0.deviceID = submission.deviceID.text
                $0.userID = submission.userID.text
                $0.sessionID = submission.sessionID
                $0.operations = submission.operations.map(\.bus)
            }
        } completion: { result in
            var answer: Mss_Bus_V1_SubmitReply?
            if case .success(let reply) = result, case .submit(let taken)? = reply.body { answer = taken }
            session.handle(.operationsAnswered(answer, number: submission.number))
        }
    }

    // MARK: Verdicts

    /// Requests a verdict from a validator. Without a reply, the verdict is unknown.
    func validate(
        instanceID: InstanceID, userID: UserID, sessionID: String, bindNumber: UInt32, for session: SessionHandle
    ) {
        let askedAt = contexts.clock.now()
        bus.request(.validate, as: Mss_Bus_V1_ValidateCommands.self) { number in
            .with {
                $0.correlation = number
                $0.instanceID = instanceID.text
                $0.userID = userID.text
                $0.sessionID = sessionID
            }
        } completion: { result in
            var answer: Mss_Bus_V1_ValidateReply?
            if case .success(let reply) = result, case .validate(let verdict)? = reply.body { answer = verdict }
            session.handle(.validated(answer, bindNumber: bindNumber, askedAt: askedAt))
        }
    }
}
