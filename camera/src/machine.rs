//! The handling of each input.

use selvedge_core::roster::Standing;
use selvedge_core::{Context, Delta, Input, Machine, Member};

use crate::granted::Released;
use crate::request::Permit;
use crate::room::Abstention;
use crate::slow::Sum;
use crate::state::{Camera, Stage};
use crate::tree::Subtree;
use crate::{Command, Event, Message, Misbehaviour, Reject, Timer, Token};

impl Camera {
    /// Asks to enter. Takes O(members), as many messages, and one round trip when no other node
    /// wants to enter.
    ///
    /// # Errors
    /// [`Reject::AlreadyWaiting`], [`Reject::AlreadyInside`].
    fn enter(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match self.stage {
            Stage::Idle => {}
            Stage::Waiting(_) => return Err(Reject::AlreadyWaiting),
            Stage::Inside(_) => return Err(Reject::AlreadyInside),
        }
        self.request(cx);
        Ok(())
    }

    /// Leaves the section, and lets in the nodes that had to wait.
    ///
    /// # Errors
    /// [`Reject::NotInside`].
    fn exit(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Stage::Inside(inside) = self.stage else {
            return Err(Reject::NotInside);
        };
        self.stage = Stage::Idle;
        self.note_used(inside.token);
        cx.event(Event::Released(inside.token));
        if !self.config.keep || self.forest.contains(self.me) {
            self.release(inside.number, cx);
        }
        self.grant_deferred(|_| true, cx);
        Ok(())
    }

    /// Stops waiting, and lets others go first.
    ///
    /// # Errors
    /// [`Reject::NotWaiting`].
    fn cancel(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Stage::Waiting(waiting) = &self.stage else {
            return Err(Reject::NotWaiting);
        };
        let number = waiting.token.number;
        self.withdraw(number, cx);
        cx.event(Event::Cancelled);
        Ok(())
    }

    /// Gives back the permissions that were kept, and reports to all that the request that got them
    /// is over. Does nothing if no request is open.
    ///
    /// # Errors
    /// [`Reject::AlreadyWaiting`], [`Reject::AlreadyInside`].
    fn give_back(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match self.stage {
            Stage::Idle => self.end_kept(cx),
            Stage::Waiting(_) => return Err(Reject::AlreadyWaiting),
            Stage::Inside(_) => return Err(Reject::AlreadyInside),
        }
        Ok(())
    }

    /// Ends the request that stayed open after the exit, if there is one.
    pub(crate) fn end_kept(&mut self, cx: &mut Context<'_, Self>) {
        self.kept.retain(|_, ()| false);
        // Also where no permission is kept any more: the nodes that gave one go on naming this node.
        if self.issued.is_open() {
            self.release(self.issued.latest(), cx);
        }
    }

    /// Takes a new bound for the number of lives, from 1. A request that waits is held to it.
    ///
    /// # Errors
    /// [`Reject::Config`] when it is 0.
    fn bound(&mut self, max_lives: u32) -> Result<(), Reject> {
        let config = self.config.with_max_lives(max_lives);
        config.check()?;
        self.config = config;
        Ok(())
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Resend => self.ask_again(cx),
            Timer::Tree => self.ask_trees_again(cx),
            Timer::Refresh => self.refresh(cx),
            Timer::Takeover(member) => self.pass_over(member),
        }
    }

    fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(delta) = self.peers.about_others(delta)? else {
            // It is about this node itself.
            return Ok(());
        };
        let member = self.life(delta.member());
        match delta {
            Delta::Suspected(_) => {}
            Delta::Joined(_) | Delta::Refuted(_) => {
                if self.meet(member, cx) {
                    self.note(|it| it.peers.set(member, Standing::Listed));
                    self.on_returned(member, cx);
                }
            }
            // A repeated delta changes nothing: above all, no takeover time begins again.
            Delta::Failed(_) if self.peers.is_failed(member) => {}
            Delta::Failed(_) => {
                if self.meet(member, cx) {
                    self.note(|it| it.peers.set(member, Standing::Failed));
                    self.on_failed(member, cx);
                }
            }
            Delta::Left(_) | Delta::Confirmed(_) => {
                self.meet(member, cx);
                self.on_ended(member, cx);
            }
        }
        Ok(())
    }

    /// Takes note of a life. Returns false if it has ended, or for lack of room.
    pub(crate) fn meet(&mut self, member: Member, cx: &mut Context<'_, Self>) -> bool {
        if self.peers.is_over(member) {
            return false;
        }
        if !self.make_room_for(member) {
            return false;
        }
        match self.peers.meet(member) {
            Ok(None) => true,
            Ok(Some(former)) => {
                self.forget(former, cx);
                true
            }
            Err(_) => false,
        }
    }

    /// Handles the certain end of a life.
    fn on_ended(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if self.rules.no_tombstones() {
            self.peers.forget(member.id);
            self.on_lost(member, cx);
            self.stop_awaiting(member, cx);
            return;
        }
        // A lack of room was counted when the life was first met.
        let _is_remembered = self.peers.set(member, Standing::Over).is_ok();
        self.forget(member, cx);
    }

    /// Forgets the requests of a life that has ended, and our requests to it. It may have been inside
    /// with any number for which it had OKs.
    fn forget(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(grant) = self.granted.forget(member) {
            self.tokens.raise(Token {
                number: grant.up_to,
                by: member,
            });
        }
        self.kept.remove(&member);
        self.forest.remove(member);
        self.on_lost(member, cx);
        self.stop_awaiting(member, cx);
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let from = self.life(from);
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from).into());
        }
        message.check()?;
        if self.peers.is_over(from) {
            self.counters.0.stale += 1;
            return Ok(());
        }
        let is_known = self.meet(from, cx);
        match message {
            // Only the content of these has to be remembered.
            Message::Request { request, .. } if !is_known => self.abstain(from, request, cx),
            Message::Release { last, .. } if !is_known => self.on_used(from, last, cx),
            Message::Request { request, after } => self.on_request(from, request, after, cx),
            Message::Ok {
                life,
                number,
                after,
                rivals,
                more,
                floor,
            } => {
                let permit = Permit {
                    life,
                    number,
                    after,
                    more,
                    floor,
                };
                self.on_ok(from, permit, &rivals, cx);
            }
            Message::Wait { number } => self.on_wait(from, number),
            Message::Release { number, last, over } => {
                self.on_release(from, Released { number, over }, last, cx);
            }
            Message::Fence { token } => self.fence(token, cx),
            Message::Floor { token } => self.tokens.raise(token),
            Message::Join { tree, up_to, last } => {
                self.on_join(from, tree, tree.request(up_to, last), cx);
            }
            Message::Nack { tree } => self.on_nack(from, tree, cx),
            // A message to our former life is not about a tree of this life. Other nodes have adopted
            // the children of our former life.
            Message::Echo { life, .. } | Message::Up { life, .. }
                if life != self.me.incarnation.0 && !self.rules.one_life() =>
            {
                self.counters.0.stale += 1;
            }
            Message::Echo {
                tree,
                levels,
                branches,
                ..
            } => self.on_echo(from, tree, Subtree { levels, branches }, cx),
            Message::Up {
                tree,
                oks,
                after,
                rivals,
                more,
                floor,
                ..
            } => {
                let sum = Sum {
                    oks,
                    after,
                    more,
                    floor,
                };
                self.on_up(from, tree, sum, &rivals, cx);
            }
            Message::Adopt {
                tree,
                up_to,
                last,
                after,
            } => self.on_adopt(from, tree, tree.request(up_to, last), after, cx),
            Message::Broken { tree } => self.on_broken(from, tree, cx),
            Message::Over {
                root,
                number,
                last,
                over,
            } => {
                if root.id != self.me.id && self.meet(root, cx) {
                    self.on_release(root, Released { number, over }, last, cx);
                }
            }
            Message::Abstain {
                life,
                number,
                over,
                floor,
            } => {
                let abstention = Abstention {
                    life,
                    number,
                    over,
                    floor,
                };
                self.on_abstain(from, abstention);
            }
        }
        Ok(())
    }
}

impl Machine for Camera {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(timer) => {
                self.on_tick(timer, cx);
                Ok(())
            }
            Input::Membership(delta) => self.learn(delta, cx),
            Input::Command(Command::Enter) => self.enter(cx),
            Input::Command(Command::Exit) => self.exit(cx),
            Input::Command(Command::Cancel) => self.cancel(cx),
            Input::Command(Command::GiveBack) => self.give_back(cx),
            Input::Command(Command::SetMaxLives(max_lives)) => self.bound(max_lives),
        }?;
        self.look(cx);
        Ok(())
    }
}
