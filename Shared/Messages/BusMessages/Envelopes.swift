package import SwiftProtobuf

/// A body on the bus: a schema version and a list. Two concatenated envelopes of one type are the envelope of both
/// lists, so the AMQP driver can pack waiting bodies into one.
package protocol Envelope: SwiftProtobuf.Message, Sendable {
    associatedtype Element: SwiftProtobuf.Message & Sendable
    var schema: UInt32 { get set }
    var elements: [Element] { get set }
}

extension Envelope {
    /// The serialized envelope around a list.
    package static func body(_ elements: [Element]) -> [UInt8] {
        var envelope = Self()
        envelope.schema = Topology.schemaVersion
        envelope.elements = elements
        // Serialization fails only for proto2 required fields and oversized messages, which our schemas do not have.
        return (try? envelope.serializedBytes()) ?? []
    }

    /// The list of a body; nil for bytes that are no envelope of this type. Unknown fields of newer processes are
    /// ignored.
    package static func elements(of body: [UInt8]) -> [Element]? {
        (try? Self(serializedBytes: body))?.elements
    }
}

extension Mss_Bus_V1_CommandHeads: Envelope {
    package var elements: [Mss_Bus_V1_CommandHead] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_AppendCommands: Envelope {
    package var elements: [Mss_Bus_V1_AppendCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_SessionCommands: Envelope {
    package var elements: [Mss_Bus_V1_SessionCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_FetchCommands: Envelope {
    package var elements: [Mss_Bus_V1_FetchCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_AckCommands: Envelope {
    package var elements: [Mss_Bus_V1_AckCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_ControlCommands: Envelope {
    package var elements: [Mss_Bus_V1_ControlCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_OperationCommands: Envelope {
    package var elements: [Mss_Bus_V1_OperationCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_AdmissionCommands: Envelope {
    package var elements: [Mss_Bus_V1_AdmissionCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_ValidateCommands: Envelope {
    package var elements: [Mss_Bus_V1_ValidateCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_Replies: Envelope {
    package var elements: [Mss_Bus_V1_Reply] {
        get { replies }
        set { replies = newValue }
    }
}

extension Mss_Bus_V1_GatewayNotices: Envelope {
    package var elements: [Mss_Bus_V1_GatewayNotice] {
        get { notices }
        set { notices = newValue }
    }
}

extension Mss_Bus_V1_Facts: Envelope {
    package var elements: [Mss_Bus_V1_Fact] {
        get { facts }
        set { facts = newValue }
    }
}

extension Mss_Bus_V1_ProcessReports: Envelope {
    package var elements: [Mss_Bus_V1_ProcessReport] {
        get { reports }
        set { reports = newValue }
    }
}

extension Mss_Bus_V1_SubmitCommands: Envelope {
    package var elements: [Mss_Bus_V1_SubmitCommand] {
        get { commands }
        set { commands = newValue }
    }
}

extension Mss_Bus_V1_RelayCommands: Envelope {
    package var elements: [Mss_Bus_V1_RelayCommand] {
        get { commands }
        set { commands = newValue }
    }
}

/// A command of any queue. These members have the same field numbers in all commands (`CommandHeads`).
package protocol BusCommand: SwiftProtobuf.Message, Sendable {
    /// The caller's number of the request.
    var correlation: UInt64 { get set }
    /// Milliseconds since 1970 by the database's clock. A command past it is refused without effect. 0: no deadline.
    var deadlineMs: Int64 { get set }
}

extension Mss_Bus_V1_AppendCommand: BusCommand {}
extension Mss_Bus_V1_SessionCommand: BusCommand {}
extension Mss_Bus_V1_FetchCommand: BusCommand {}
extension Mss_Bus_V1_AckCommand: BusCommand {}
extension Mss_Bus_V1_ControlCommand: BusCommand {}
extension Mss_Bus_V1_OperationCommand: BusCommand {}
extension Mss_Bus_V1_AdmissionCommand: BusCommand {}
extension Mss_Bus_V1_ValidateCommand: BusCommand {}
extension Mss_Bus_V1_SubmitCommand: BusCommand {}
extension Mss_Bus_V1_RelayCommand: BusCommand {}
